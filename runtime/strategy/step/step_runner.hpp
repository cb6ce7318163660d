#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/denormals.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/optim/schedule.hpp>
#include <ronda/optim/updater.hpp>
#include <ronda/runtime/strategy/replica/control_block.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>
#include <ronda/runtime/strategy/replica/step_clock.hpp>
#include <ronda/runtime/strategy/step/computation.hpp>
#include <ronda/runtime/strategy/step/evaluation.hpp>
#include <ronda/runtime/strategy/step/gradient_accumulator.hpp>
#include <ronda/runtime/strategy/step/gradient_exchange.hpp>
#include <ronda/runtime/strategy/step/mirrored_options.hpp>
#include <ronda/runtime/strategy/step/planned_rank_sums.hpp>
#include <ronda/runtime/strategy/step/step_queue.hpp>
#include <ronda/runtime/strategy/step/step_result.hpp>
#include <ronda/runtime/strategy/step/training_state.hpp>

namespace ronda {

/// Runs the steps of a strategy on one rank:
///
///     begin_step    the computation computes the micro-batch; its gradients are summed over micro-batches and ranks
///                   after the last one: exchange.reduce, updater.decide, exchange.update, exchange.publish
///     finish_step   waits for the step, and returns its result
///
/// On a GPU the work is queued and later replayed. Owns all that works on the replica's arenas.
class StepRunner {
 public:
  struct Parts {
    Communicator& communicator;
    Computation& computation;
    Replica& replica;  ///< with its arenas; bound here
    Optimizer& optimizer;
    std::unique_ptr<GradientExchange> exchange;
    std::unique_ptr<PlannedRankSums> rank_sums;  ///< of layers, over the ranks that compute alike; may be null
    SumOverParts* over_parts = nullptr;          ///< for ranks that hold parts of the model: UpdaterOptions::parts
    std::vector<Range> shares = {};              ///< TrainingState::Parts::shares
    Shard computing;                             ///< TrainingState::Parts::computing
  };
  using MakeState = FunctionRef<std::unique_ptr<TrainingState>(const TrainingState::Parts&)>;

  /// Not collective. Communicator, computation, replica and optimizer must outlive this object. Throws InputError for
  /// invalid options, ResourceError.
  /// @param make_state  makes the state of the whole model
  StepRunner(Parts parts, const MirroredOptions& options, const Schedule& schedule, MakeState make_state);
  StepRunner(const StepRunner&) = delete;  // its parts point to each other

  // ---- steps: see Strategy

  void begin_step(const Batch& batch, const StepFlags& raised);
  void accumulate(const Batch& batch, const StepFlags& raised);
  StepResult finish_step();
  void set_micro_batches(std::size_t count);
  [[nodiscard]] std::optional<std::size_t> samples_for(std::size_t step, std::size_t steps);
  void synchronise_next() noexcept;

  // ---- between steps: see Strategy

  Evaluation evaluate(const Shape& outputs, BatchLoader& loader, const SeeOutputs& see, const Metrics& metrics);
  [[nodiscard]] std::string explain_nonfinite(const Batch& batch);

  // ---- for the computation

  /// Describes a training pass over a micro-batch of the next step.
  /// @param here  in the memory of the model's device
  [[nodiscard]] Pass training_pass(const Batch& here) const;
  /// The callback for the gradients of a micro-batch, by its number in the step.
  [[nodiscard]] OnReady listen(std::size_t micro_batch);
  /// The callback for those of the current micro-batch.
  [[nodiscard]] OnReady listen() { return listen(queue_->micro_batch()); }
  [[nodiscard]] StepClock& clock() noexcept { return clock_; }

  // ---- for manual steps

  /// Checks a batch, and prepares the micro-batch.
  void start(const Batch& batch);
  [[nodiscard]] StepResult count(const StepOutcome& outcome);
  [[nodiscard]] StepQueue& queue() noexcept { return *queue_; }
  [[nodiscard]] const StepQueue& queue() const noexcept { return *queue_; }
  [[nodiscard]] GradientExchange& exchange() noexcept { return *exchange_; }
  [[nodiscard]] const GradientExchange& exchange() const noexcept { return *exchange_; }
  [[nodiscard]] const ExchangeTraits& traits() const noexcept { return traits_; }
  [[nodiscard]] Updater& updater() noexcept { return *updater_; }
  [[nodiscard]] TrainingState& state() noexcept { return *state_; }
  [[nodiscard]] const TrainingState& state() const noexcept { return *state_; }
  /// Held while a function computes.
  [[nodiscard]] FlushDenormals flush_denormals() const { return FlushDenormals(replica_.stream().threads()); }

 private:
  void run(const Batch& batch, const StepFlags& raised);
  void update();

  Communicator& communicator_;
  Computation& computation_;
  Replica& replica_;
  std::unique_ptr<GradientExchange> exchange_;
  ExchangeTraits traits_;  ///< of `exchange_`
  std::unique_ptr<PlannedRankSums> rank_sums_;
  std::unique_ptr<GradientAccumulator> accumulator_;
  std::unique_ptr<Updater> updater_;
  std::unique_ptr<StepQueue> queue_;
  std::unique_ptr<TrainingState> state_;
  ControlBlock other_sums_;  ///< for evaluation and explain_nonfinite
  HostCopy host_copy_;
  StepClock clock_;
  bool idles_ = false;  ///< this rank computes nothing in the current step, or in the next one if none is running
};

}  // namespace ronda
