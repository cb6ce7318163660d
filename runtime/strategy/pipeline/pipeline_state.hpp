#pragma once
#include <memory>
#include <string>

#include <ronda/collectives/communicator.hpp>
#include <ronda/runtime/strategy/pipeline/whole_model.hpp>
#include <ronda/runtime/strategy/step/training_state.hpp>

namespace ronda {

/// The state of a training whose ranks each train a stage: it shows the whole model, on every rank. The optimizer's
/// states are divided: a rank has those of its stage.
class PipelineState final : public TrainingState {
 public:
  /// The ranks among which a rank's state is spread.
  struct Ranks {
    Communicator& pipeline;  ///< the stages of this rank's pipeline
    Communicator& replicas;  ///< the ranks that have this rank's stage
  };

  /// @param parts  of this rank's stage; the communicator is all ranks'
  /// @param whole  bound; outlives this object
  PipelineState(const Parts& parts, const Ranks& ranks, const StagedModel& model, const WholeModel& whole);

  [[nodiscard]] std::span<const Parameter> parameters() const noexcept override { return whole_.parameters(); }
  [[nodiscard]] std::string parameter_hash() const override;
  void broadcast_parameters() override;
  void restart_average() override { whole_.restart_average(); }
  void visit(StateVisitor& visitor) override;
  void visit_model(StateVisitor& visitor) override;
  void visit_layer_states(StateVisitor& visitor) override { whole_.visit_layer_states(visitor); }
  void gather_state() override { whole_.gather(ranks_.pipeline); }
  void average_states() override;
  [[nodiscard]] Zeros zeros() const override;

 protected:
  void swap_average() override;

 private:
  Ranks ranks_;
  const WholeModel& whole_;
};

}  // namespace ronda
