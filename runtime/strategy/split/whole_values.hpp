#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/parameter.hpp>
#include <ronda/core/state.hpp>
#include <ronda/layers/initializer.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>
#include <ronda/runtime/strategy/split/split_model.hpp>

namespace ronda {

/// The values of the whole model on one rank, plain as files hold them, for files, hashes and whoever reads a model. A
/// rank computes with its part, in the layouts of its operations: `gather` copies from all ranks' parts, and `spread`
/// to this rank's.
class WholeValues {
 public:
  /// Takes the memory. Throws ResourceError.
  /// @param model    outlives this object
  /// @param part     this rank's
  /// @param average  as much once more, for an average of the values
  WholeValues(const SplitModel& model, std::size_t part, bool average);

  [[nodiscard]] static std::size_t bytes(const SplitModel& model) { return model.elements() * sizeof(float); }
  /// Once the replica of this rank's part is bound; it outlives this object.
  void bind(const Replica& replica) { replica_ = &replica; }
  /// Draws the initial values, those of one rank's model, and spreads them.
  void initialize(Initializer usual, std::uint64_t seed);

  [[nodiscard]] std::span<const Parameter> parameters() const noexcept { return parameters_; }
  void visit_parameters(StateVisitor& visitor) const;
  /// `conv1.weight.ema`, where an average is kept.
  void visit_average(StateVisitor& visitor) const;
  /// Of a parameter; empty where no average is kept.
  [[nodiscard]] Tensor average_of(const Parameter& parameter) const;
  [[nodiscard]] Tensor all() const;  ///< values, one after another
  /// Both do nothing where no average is kept.
  void restart_average() const;
  void swap_average() const;

  /// Of this rank's values and average. Collective over the group.
  /// @param group  the ranks that have the parts, by part
  void gather(Communicator& group) const;
  void spread() const;

 private:
  struct Arena {
    const Buffer* whole;
    std::byte* part;  ///< the replica's
  };
  [[nodiscard]] std::vector<Arena> arenas() const;
  [[nodiscard]] Tensor tensor_in(const Buffer& arena, std::size_t parameter) const;
  /// A parameter as the replica has it, or its average.
  [[nodiscard]] Tensor of_part(ParameterId id, std::byte* arena) const;
  void gather(Communicator& group, std::size_t parameter, const Arena& arena) const;

  const SplitModel& model_;
  std::size_t part_;
  const Replica* replica_ = nullptr;
  Buffer values_, average_;
  std::vector<std::size_t> places_;  ///< of the parameters, in elements
  std::vector<Parameter> parameters_;
};

}  // namespace ronda
