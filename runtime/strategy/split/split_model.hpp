#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/layers/graph.hpp>
#include <ronda/layers/graph_split.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/layers/loss.hpp>
#include <ronda/layers/program.hpp>
#include <ronda/runtime/strategy/parts/model_partition.hpp>
#include <ronda/runtime/strategy/replica/replica_plan.hpp>
#include <ronda/runtime/strategy/split/split.hpp>

namespace ronda {

/// A model whose operations are split, as every rank knows it: all ranks plan all parts, so that they pick primitives
/// together, and what they add up has one layout. It takes no memory of the device.
class SplitModel {
 public:
  /// @param parts   from Split::parts_on
  /// @param picker  of all ranks
  /// Throws InputError for operations that cannot be split, and where nothing is to be; for sparse gradients.
  SplitModel(Graph whole, const Loss& loss, Primitives& primitives, Picker& picker, const Split& options,
             std::size_t parts);

  [[nodiscard]] std::size_t parts() const noexcept { return plans_.size(); }
  [[nodiscard]] const Graph& whole() const noexcept { return whole_; }
  [[nodiscard]] const ReplicaPlan& plan(std::size_t part) const { return plans_[part]; }
  [[nodiscard]] const std::vector<SplitChoice>& choices() const noexcept { return choices_; }
  /// The slices that the parts have of parameters; all other parameters and all states are in every part.
  [[nodiscard]] ModelPartition partition() const;
  /// Whether every part has all of this parameter.
  [[nodiscard]] bool everywhere(std::string_view name) const;
  /// What ranks compare: what is split, and each part's plan.
  [[nodiscard]] std::vector<std::string> lines() const;
  /// What the cost model says of each operation, where it chose.
  [[nodiscard]] const std::vector<std::string>& reasons() const noexcept { return reasons_; }
  /// The program of a part; once for each.
  [[nodiscard]] Program take_program(std::size_t part) { return std::move(*programs_[part]); }

 private:
  void choose(const Split& options, std::size_t parts);
  void require_alike() const;

  Graph whole_;
  std::vector<SplitChoice> choices_;
  std::vector<std::string> reasons_;
  SplitGraph split_;
  std::vector<std::optional<Program>> programs_;
  std::vector<ReplicaPlan> plans_;
};

}  // namespace ronda
