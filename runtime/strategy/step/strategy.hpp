#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/data/loader.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>
#include <ronda/runtime/strategy/step/computation.hpp>
#include <ronda/runtime/strategy/step/evaluation.hpp>
#include <ronda/runtime/strategy/step/gradient_exchange.hpp>
#include <ronda/runtime/strategy/step/mirrored_options.hpp>
#include <ronda/runtime/strategy/step/part_costs.hpp>
#include <ronda/runtime/strategy/step/step_result.hpp>
#include <ronda/runtime/strategy/step/strategy_plan.hpp>
#include <ronda/runtime/strategy/step/training_state.hpp>

namespace ronda {

class StepRunner;

/// How ranks make a training step together. The trainer, its hooks and checkpoints use strategies only through this
/// interface.
///
/// A strategy is made for one model, one loss and one batch size, and allocates all its memory then: steps allocate
/// nothing. On each rank one thread uses it. All ranks begin and finish the same steps in the same order.
class Strategy : protected Computation {
 public:
  Strategy(const Strategy&) = delete;  // its members point to each other
  Strategy& operator=(const Strategy&) = delete;
  ~Strategy() override;

  // ---- the plan; not collective

  [[nodiscard]] const StrategyPlan& plan() const noexcept { return plan_; }
  [[nodiscard]] Communicator& communicator() noexcept { return communicator_; }
  /// The part of each global batch that this rank computes.
  [[nodiscard]] Shard shard() const noexcept { return shard_; }
  /// The part of the test data that this rank computes.
  [[nodiscard]] Shard test_shard() const noexcept { return test_shard_; }
  /// The exchange of gradients between ranks, for reports.
  [[nodiscard]] const GradientExchange& exchange() const noexcept;

  // ---- steps

  /// Runs one step on this rank's batch. With micro-batches: call `accumulate` with all but the last, then this with
  /// the last. Collective. Throws InputError for a batch whose shapes or rows differ from the plan's, as accumulate and
  /// evaluate do; CommunicationError if a rank does not take part in time or a connection fails.
  StepResult train_step(const Batch& batch);
  /// train_step in two parts, so that a GPU does not wait for the host. Results are returned in the order of
  /// begin_step. At most max_in_flight() steps may be unfinished; on the CPU that is one, and begin_step does all the
  /// work.
  ///
  /// Flags that a rank raises reach the others with the step's result. If a step is not finite, later steps that have
  /// already begun are still applied. While steps are in flight, parameters and `updates` must be neither read nor set.
  /// @param batch  in pinned memory (LoaderOptions::staging): must not change until its step is finished; in other
  ///               memory: until this returns
  void begin_step(const Batch& batch);
  StepResult finish_step();
  /// Forward and backward pass of a micro-batch before the last one. Only layers communicate, such as SyncBatchNorm.
  void accumulate(const Batch& batch);
  /// Sets this rank's micro-batches per step, for steps that begin later; ranks may use different numbers. Any number
  /// from 1 if the strategy was made for several, otherwise only 1. Not collective. Throws LogicError within a step;
  /// InputError if the model's layers or the device need the same number on all ranks.
  void set_micro_batches(std::size_t count);
  /// Returns the number of the step of this epoch whose samples this rank is to compute in the next step; usually
  /// `step`. Call it before the `step`-th step (from 0) of an epoch of `steps`. Nullopt: this rank computes no samples
  /// in the next step and ignores its batches. Not collective.
  [[nodiscard]] std::optional<std::size_t> samples_for(std::size_t step, std::size_t steps);
  [[nodiscard]] std::size_t steps_in_flight() const noexcept;
  [[nodiscard]] std::size_t max_in_flight() const noexcept;
  /// Waits for all steps in flight and drops their results. Call it before freeing the data that they read.
  void drain() noexcept;

  /// If ranks do not take every step together (see Pace): ends the next step with equal replicas; its result then
  /// covers all steps since the last synchronised one. Call it on all ranks. No effect in other strategies, whose steps
  /// are all synchronised.
  void synchronise_next() noexcept;

  /// Sets the flags that this rank raises in each step that begins from now on. Not collective.
  void raise(const StepFlags& flags) noexcept { raised_ = flags; }
  [[nodiscard]] const StepFlags& raised() const noexcept { return raised_; }
  /// Raises `stop`: StepResult::stop is then set on all ranks, in the next step that begins. Any rank may call it.
  void request_stop() noexcept { raised_.stop = 1; }

  // ---- between steps

  /// Evaluates one epoch of `loader` by forward passes, summed over all ranks. Layer states are averaged first, so all
  /// ranks evaluate the same model; if an average of the parameters is kept, that is evaluated. Collective. Throws
  /// InputError if no sample has a weight.
  /// @param see      optional callback for each batch and its outputs. The batch has values unless the loader provides
  ///                 only the numbers of samples (BatchContents::samples)
  /// @param metrics  further metrics to measure, the same on all ranks; `evaluate(loader, {}, {&top5})`. Throws
  ///                 InputError if one does not accept the model's outputs or targets
  using SeeOutputs = ronda::SeeOutputs;
  Evaluation evaluate(BatchLoader& loader, const SeeOutputs& see = {}, const Metrics& metrics = {});
  /// Explains a step whose result is nonfinite or spoiled: computes this rank's part of it again, without reduction.
  /// Returns the ranks whose loss or gradient is not finite, and the first such parameter in the order of backward.
  /// Collective; the same text on all ranks. Parameters that are not finite are named and set to 0, so that they do not
  /// hide the cause: training cannot continue afterwards. The gradients are then this rank's own.
  /// @param batch  the batch of that step
  [[nodiscard]] std::string explain_nonfinite(const Batch& batch);

  /// True if `data` is in device memory on all ranks. Then a batch may hold numbers of its samples instead of values.
  /// The same on all ranks.
  [[nodiscard]] bool keeps(const Dataset& data) const noexcept;
  /// Copies datasets to the device if it has room (see keeps). They must live until forget_data. Collective.
  void keep_data(std::span<const Dataset* const> data);
  /// Frees the datasets in device memory. Call it before destroying them; later batches must hold values. Not
  /// collective.
  void forget_data() noexcept;

  /// Costs of a pipeline's stages so far; empty if the model is not cut. Collective.
  [[nodiscard]] virtual std::vector<StageCosts> stages() { return {}; }

  /// Costs of splitting operations over ranks so far. Not collective.
  [[nodiscard]] virtual SplitCosts split() const { return {}; }

  // ---- state kept from step to step

  [[nodiscard]] TrainingState& state() noexcept;
  [[nodiscard]] const TrainingState& state() const noexcept;

  // ---- shortcuts to plan() and state()

  [[nodiscard]] const ComputeDevice& device() const noexcept { return plan().device; }
  [[nodiscard]] std::size_t batch_capacity() const noexcept { return plan().batch_capacity; }
  [[nodiscard]] const MemoryUse& memory() const noexcept { return plan().memory; }
  [[nodiscard]] const Picks& picks() const noexcept { return plan().picks; }
  [[nodiscard]] const std::vector<std::string>& plan_lines() const noexcept { return plan().lines; }
  [[nodiscard]] std::string plan_hash() const { return plan().hash(); }
  [[nodiscard]] std::span<const Parameter> parameters() const noexcept { return state().parameters(); }
  [[nodiscard]] std::string parameter_hash() const { return state().parameter_hash(); }
  void broadcast_parameters() { state().broadcast_parameters(); }
  void visit(StateVisitor& visitor) { state().visit(visitor); }
  [[nodiscard]] std::uint64_t updates() const noexcept { return state().updates(); }

 protected:
  /// @param sink  may be null
  Strategy(Communicator communicator, std::unique_ptr<Optimizer> optimizer, const MirroredOptions& options,
           EventSink* sink);
  /// Runs the steps from now on.
  void run_by(std::unique_ptr<StepRunner> runner);
  [[nodiscard]] StepRunner& runner() noexcept { return *runner_; }
  [[nodiscard]] const StepRunner& runner() const noexcept { return *runner_; }
  /// Throws InputError, agreed, if the plan exceeds the memory limit. Collective.
  void check_memory() const;

  Communicator communicator_;
  EventSink silence_;
  EventSink& sink_;
  MirroredOptions options_;  ///< completed
  Shard shard_, test_shard_;
  StrategyPlan plan_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Replica> replica_;  ///< of this rank's part of the model

 private:
  std::unique_ptr<StepRunner> runner_;
  StepFlags raised_;
};

}  // namespace ronda
