#pragma once
#include <memory>
#include <optional>
#include <string>

#include <ronda/layers/layer.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/optim/schedule.hpp>
#include <ronda/runtime/strategy/replica/control_block.hpp>
#include <ronda/runtime/strategy/step/mirrored_options.hpp>
#include <ronda/runtime/strategy/step/strategy.hpp>

namespace ronda {

class PlannedRankSums;

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

  // ---- manual steps: these functions throw LogicError with steps in flight

  /// Returns `batch` in the memory that the model computes in: on the CPU the batch itself; on a GPU a copy, valid
  /// until the next call.
  const Batch& place(const Batch& batch);
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

 private:
  void check(const Batch& batch) const override { replica_->check(batch); }
  void compute(const Batch& here) override;
  void require_micro_batches(std::size_t count) const override;
  Outputs evaluate_batch(const Batch& given, StepControl* sums) override;
  std::optional<double> compute_alone(const Batch& given, const OnReady& on_ready, ControlBlock& sums) override;

  void make_replica(const Layer& model, const Loss& loss, Picker& picker);
  [[nodiscard]] std::unique_ptr<GradientExchange> make_exchange();
  [[nodiscard]] std::unique_ptr<PlannedRankSums> make_rank_sums();
  void check_memory_and_suggest() const;
  [[nodiscard]] Message sharding_that_fits() const;

  std::unique_ptr<ExchangePlan> exchange_plan_;
  std::unique_ptr<ControlBlock> step_sums_;  ///< in the exchange's memory, for manual steps
};

}  // namespace ronda
