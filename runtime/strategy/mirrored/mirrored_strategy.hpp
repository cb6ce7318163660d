#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <ronda/core/denormals.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/optim/schedule.hpp>
#include <ronda/runtime/strategy/replica/control_block.hpp>
#include <ronda/runtime/strategy/step/gradient_accumulator.hpp>
#include <ronda/runtime/strategy/step/mirrored_options.hpp>
#include <ronda/runtime/strategy/step/planned_rank_sums.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>
#include <ronda/runtime/strategy/replica/step_clock.hpp>
#include <ronda/runtime/strategy/step/step_queue.hpp>
#include <ronda/runtime/strategy/step/strategy.hpp>

namespace ronda {

/// Synchronous data-parallel training: every rank holds the same model, computes its part of each global batch, and
/// applies the same mean gradient. The replicas therefore stay bitwise equal.
///
/// A custom loop may call the parts of `train_step` (see Strategy) and gets the same bits:
///
///     Pass pass = strategy.begin_pass(batch);
///     const Tensor& outputs = strategy.forward(batch, pass);
///     const Tensor& gradient = strategy.loss(batch, pass);
///     strategy.backward(pass);
///     StepResult result = strategy.apply(strategy.reduce(pass), pass);
///
/// Manual steps are slower on GPUs, and for large models on one node, which train_step updates by parts (NodeReduce).
///
/// With ParameterServer some ranks, the servers, compute nothing: train_step and evaluate ignore their
/// batches, whose weights are 0.
///
/// On the CPU, computations flush denormal numbers to zero (see FlushDenormals), also in user-defined layers. Each
/// function restores the floating-point mode of the caller's threads when it returns.
///
/// On GPUs, each rank uses one GPU. Batches are in host memory; a custom loop first calls `const Batch& here =
/// strategy.place(batch)` and continues with `here`. Gradients are reduced by NCCL or through the host (see
/// Communicator::use_device). With NCCL the second call of train_step is recorded, and later calls replay it.
class MirroredStrategy final : public Strategy {
 public:
  /// Plans model and loss, allocates all memory, and copies rank 0's initial parameters to all ranks. On a GPU, a
  /// communicator without a device is assigned this one; `fusion.algorithm` chooses NCCL or the host. Collective; all
  /// ranks throw the same error. The sink must outlive the strategy; model and loss need not, and other strategies may
  /// use them. Throws InputError for shapes that do not fit, ranks whose plans differ, and a plan beyond the memory
  /// limit.
  MirroredStrategy(Communicator communicator, const Layer& model, const Loss& loss,
                   std::unique_ptr<Optimizer> optimizer, Schedule schedule, const MirroredOptions& options,
                   EventSink* sink = nullptr);
  ~MirroredStrategy() override;

  void begin_step(const Batch& batch) override;
  StepResult finish_step() override;
  void accumulate(const Batch& batch) override;
  void set_micro_batches(std::size_t count) override;
  [[nodiscard]] std::size_t steps_in_flight() const noexcept override { return queue_->in_flight(); }
  [[nodiscard]] std::size_t max_in_flight() const noexcept override { return queue_->max_in_flight(); }
  void drain() noexcept override { queue_->drain(); }
  void synchronise_next() noexcept override {
    if (traits_.pace != nullptr) traits_.pace->synchronise_next();
  }
  [[nodiscard]] std::optional<std::size_t> samples_for(std::size_t step, std::size_t steps) override;

  // ---- manual steps: these functions throw LogicError with steps in flight

  /// Returns `batch` in the memory that the model computes in: on the CPU the batch itself; on a GPU a copy, valid
  /// until the next call.
  const Batch& place(const Batch& batch) { return queue_->place(batch); }
  /// The parts of train_step. On a GPU, outputs, gradients and parameters are in its memory, and `reduce` and `apply`
  /// wait for it. If workers push compressed gradients to servers that return sums, the first call allocates memory
  /// that is not in any plan.
  [[nodiscard]] Pass begin_pass(const Batch& batch);
  const Tensor& forward(const Batch& batch, const Pass& pass);
  /// Adds the loss of the outputs to the step's sums. Returns its gradient, which the caller may change before
  /// `backward`.
  const Tensor& loss(const Batch& batch, const Pass& pass);
  void backward(const Pass& pass);
  /// Collective. Returns the sums over all ranks, valid until the next begin_pass; in a local step (LocalSteps) this
  /// rank's own sums.
  const StepControl& reduce(const Pass& pass);
  /// Collective. A step without it changes no parameter, but layer states and compression residuals have already
  /// changed.
  /// @param total  the result of `reduce`, or the caller's change of it, the same on all ranks
  StepResult apply(const StepControl& total, const Pass& pass);

  // ---- between steps

  Evaluation evaluate(BatchLoader& loader, const SeeOutputs& see = {}, const Metrics& metrics = {}) override;
  [[nodiscard]] std::string explain_nonfinite(const Batch& batch) override;
  [[nodiscard]] bool keeps(const Dataset& data) const noexcept override { return queue_->keeps(data); }
  void keep_data(std::span<const Dataset* const> data) override;
  void forget_data() noexcept override;

  [[nodiscard]] const StrategyPlan& plan() const noexcept override { return plan_; }
  [[nodiscard]] Communicator& communicator() noexcept override { return communicator_; }
  [[nodiscard]] Shard shard() const noexcept override { return shard_; }
  [[nodiscard]] Shard test_shard() const noexcept override { return test_shard_; }
  [[nodiscard]] const GradientExchange& exchange() const noexcept override { return *exchange_; }
  [[nodiscard]] TrainingState& state() noexcept override { return *state_; }
  [[nodiscard]] const TrainingState& state() const noexcept override { return *state_; }

 private:
  void make_replica(const Layer& model, const Loss& loss, Picker& picker);
  void make_exchange();
  void plan_rank_sums();
  void check_memory() const;
  [[nodiscard]] std::string sharding_that_fits() const;
  void take_memory(const Schedule& schedule);
  void begin_micro_batch(const Batch& batch);
  void compute(const Batch& batch, bool first, bool last);
  void start(const Batch& batch);
  [[nodiscard]] Pass training_pass(const Batch& batch);
  /// Held while a function computes.
  [[nodiscard]] FlushDenormals flush_denormals() const { return FlushDenormals(replica_->stream().threads()); }

  Communicator communicator_;
  EventSink silence_;
  EventSink& sink_;
  MirroredOptions options_;
  std::unique_ptr<ExchangePlan> exchange_plan_;
  Shard shard_, test_shard_;  ///< empty on a server
  bool idles_ = false;        ///< this rank computes nothing in the current step, or in the next one if none is running
  StrategyPlan plan_;

  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Replica> replica_;
  std::unique_ptr<GradientExchange> exchange_;
  ExchangeTraits traits_;                       ///< of `exchange_`
  std::unique_ptr<PlannedRankSums> rank_sums_;  ///< of the computing ranks; null if only one, and on a server
  std::unique_ptr<GradientAccumulator> accumulator_;
  std::unique_ptr<Updater> updater_;
  std::unique_ptr<ControlBlock> step_sums_;   ///< in the exchange's memory
  std::unique_ptr<ControlBlock> other_sums_;  ///< for evaluation and explain_nonfinite
  std::unique_ptr<StepQueue> queue_;
  std::unique_ptr<TrainingState> state_;
  HostCopy host_copy_;
  StepClock clock_;
};

}  // namespace ronda
