#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/parameter.hpp>
#include <ronda/core/state.hpp>
#include <ronda/runtime/strategy/pipeline/staged_model.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>

namespace ronda {

/// The values of all stages on one rank, for files, hashes and whoever reads a model; its own stage computes with its
/// part of them. Two stages:
///
///     values    | stage 0 | stage 1 |      each in the layouts of its stage, on all ranks alike
///     rank 0     computes   a copy         as of the last `gather`
///     rank 1     a copy     computes
///
/// So what is shown has the same shapes and layouts on all ranks, and what a rank writes to its own stage's part is
/// what it trains on.
class WholeModel {
 public:
  /// Takes the memory of the values. Throws ResourceError.
  /// @param model  outlives this object
  /// @param mine   this rank's stage
  /// @param keeps_average  as much once more, for an average of the values
  WholeModel(const StagedModel& model, std::size_t mine, const ComputeDevice& device, bool keeps_average);

  [[nodiscard]] std::size_t bytes() const noexcept { return values_->bytes(); }  ///< of the values
  /// The part of the rank's own stage, for its replica.
  [[nodiscard]] Buffer values_of_mine() const { return mine_of(values_); }
  /// Of the average; empty where none is kept.
  [[nodiscard]] Buffer average_of_mine() const { return average_ ? mine_of(average_) : Buffer(); }
  /// Once the replica of this rank's stage is bound; it outlives this object.
  void bind(const Replica& replica);

  /// By ParameterId of the whole model. Those of other stages have no gradient.
  [[nodiscard]] std::span<const Parameter> parameters() const noexcept { return parameters_; }
  void visit_parameters(StateVisitor& visitor) const;
  /// `conv1.weight.ema`, where an average is kept.
  void visit_average(StateVisitor& visitor) const;
  /// What layers keep, by StateId of the whole model.
  void visit_layer_states(StateVisitor& visitor) const;
  /// All values, for who copies them as they lie.
  [[nodiscard]] Tensor all_values() const;
  /// Exchanges the values of the other stages with their average; those of this rank's are the updater's.
  void swap_others() const;
  /// Sets the average, if there is one, to the values.
  void restart_average() const;
  /// Every rank of a pipeline sends what its stage has to the others. Collective over them.
  /// @param pipeline  the ranks of one pipeline, by stage
  void gather(Communicator& pipeline) const;

 private:
  [[nodiscard]] Buffer mine_of(const std::shared_ptr<Buffer>& arena) const;
  [[nodiscard]] Tensor block(const Buffer& arena, std::size_t stage) const;
  void add_parameters(std::size_t stage, const Replica* replica);
  void add_states(std::size_t stage, const Replica* replica);

  const StagedModel& model_;
  std::size_t mine_;
  ComputeDevice device_;
  std::vector<std::size_t> offsets_;          ///< of each stage's values, in bytes
  std::shared_ptr<Buffer> values_, average_;  ///< of all stages; no average: null
  std::vector<Buffer> copied_states_;         ///< of other stages
  std::vector<Parameter> parameters_;
  std::vector<State> states_;
  std::vector<std::size_t> stage_of_state_;
};

}  // namespace ronda
