#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/layers/graph.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/layers/loss.hpp>
#include <ronda/layers/program.hpp>
#include <ronda/runtime/strategy/parts/model_partition.hpp>
#include <ronda/runtime/strategy/pipeline/pipeline.hpp>
#include <ronda/runtime/strategy/replica/rank_picker.hpp>
#include <ronda/runtime/strategy/replica/replica_plan.hpp>

namespace ronda {

/// What a model is planned for.
struct StageRequest {
  const Layer& model;
  const Loss& loss;
  Primitives& primitives;
  Stream& stream;  ///< of the processor, to measure on
  std::span<const Field> fields;
  std::size_t rows = 0;              ///< of a micro-batch
  std::size_t micro_batches = 1;     ///< of a step, on one pipeline
  std::size_t optimizer_states = 0;  ///< numbers that the optimizer keeps for each number of a parameter
  std::uint64_t seed = 1;
  std::string_view plan_name = {};  ///< as MirroredOptions::plan_name: nothing may be timed
};

/// A model that is cut into stages, as every rank knows it: all ranks plan all stages, so that they pick primitives
/// together and know each other's layouts. It takes no memory of the device.
class StagedModel {
 public:
  /// @param stages  from Pipeline::stages_on
  /// @param picker  of all ranks; keeps what was chosen by measured times
  /// Collective: where the cuts are measured, the whole model takes memory for that time. Throws InputError for cuts
  /// that cannot be made, and for stages without parameters.
  StagedModel(const StageRequest& request, const Pipeline& options, std::size_t stages, RankPicker& picker,
              const Communicator& communicator);

  [[nodiscard]] std::size_t stages() const noexcept { return graphs_.size(); }
  [[nodiscard]] const Graph& whole() const noexcept { return whole_; }
  [[nodiscard]] const Graph& graph(std::size_t stage) const { return graphs_[stage]; }
  [[nodiscard]] const ReplicaPlan& plan(std::size_t stage) const { return plans_[stage]; }
  /// Of a stage for a micro-batch.
  [[nodiscard]] const TensorDesc& output(std::size_t stage) const { return outputs_[stage]; }
  /// What ranks compare: the cuts, and each stage's plan.
  [[nodiscard]] std::vector<std::string> lines() const;
  /// The names of the operations with which the stages begin.
  [[nodiscard]] std::vector<std::string> begins() const;
  /// What was chosen by times, for the next run: a question and its answer; empty where the cuts were given.
  [[nodiscard]] const Picks& chosen() const noexcept { return chosen_; }
  [[nodiscard]] bool measured() const noexcept { return measured_; }
  /// The stage that has each parameter and each state.
  [[nodiscard]] ModelPartition partition() const;
  /// The program of a stage; once for each.
  [[nodiscard]] Program take_program(std::size_t stage) { return std::move(*programs_[stage]); }

 private:
  [[nodiscard]] std::vector<std::size_t> places(const StageRequest& request, const Pipeline& options,
                                                std::size_t stages, RankPicker& picker,
                                                const Communicator& communicator);
  void plan_stage(const StageRequest& request, std::size_t stage, Picker& picker);

  Graph whole_;
  std::vector<Graph> graphs_;
  std::vector<std::optional<Program>> programs_;
  std::vector<ReplicaPlan> plans_;
  std::vector<TensorDesc> outputs_;
  Picks chosen_;
  bool measured_ = false;
};

/// Plans the program of a stage once more, by the answers that the first one had; asks no other rank.
[[nodiscard]] Program plan_again(const Graph& graph, const Loss* loss, Primitives& primitives, const Picks& answered,
                                 const ProgramOptions& options);
/// How the program of a stage is planned.
[[nodiscard]] ProgramOptions options_of_stage(std::size_t stage);

}  // namespace ronda
