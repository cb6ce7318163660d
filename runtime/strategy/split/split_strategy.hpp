#pragma once
#include <memory>
#include <span>
#include <string>

#include <ronda/core/denormals.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/core/step_control.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/optim/schedule.hpp>
#include <ronda/runtime/strategy/replica/control_block.hpp>
#include <ronda/runtime/strategy/step/gradient_accumulator.hpp>
#include <ronda/runtime/strategy/step/mirrored_options.hpp>
#include <ronda/runtime/strategy/step/planned_rank_sums.hpp>
#include <ronda/runtime/strategy/parts/rank_groups.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>
#include <ronda/runtime/strategy/replica/step_clock.hpp>
#include <ronda/runtime/strategy/step/step_queue.hpp>
#include <ronda/runtime/strategy/step/strategy.hpp>

namespace ronda {

class PartsExchange;
class PlannedPartExchange;
class SplitModel;
class SplitState;
class WholeValues;

/// Tensor parallelism: the ranks of a group compute one model together, each a part of its large operations (see
/// graph_split.hpp), on the same samples. Several groups share each global batch as the ranks of a MirroredStrategy do,
/// and the ranks with the same part average its gradients.
///
/// For split operations a rank stores only its part of parameters, gradients, optimizer states and activations. All
/// other operations are computed alike by every rank of a group: their parameters have bitwise equal gradients there,
/// and so stay equal. With several groups the ranks take the first group's values, since sums over the groups may have
/// another order in each part. Results are those of a MirroredStrategy with as many ranks as there are groups, to
/// rounding. Between steps each rank also has the values of the whole model: see SplitState. Only for CPUs and float32.
///
/// The constructor and planning are in split_plan.cpp.
class SplitStrategy final : public Strategy {
 public:
  /// As MirroredStrategy's. Also throws InputError for unsupported cases: GPUs, half types, sparse gradients, rules
  /// that need whole parameters, a number of ranks that is not a multiple of the group size, and operations that cannot
  /// be split.
  /// @param options  `split` selects the split operations; `batch_capacity` is the group's
  SplitStrategy(Communicator communicator, const Layer& model, const Loss& loss, std::unique_ptr<Optimizer> optimizer,
                Schedule schedule, const MirroredOptions& options, EventSink* sink = nullptr);
  ~SplitStrategy() override;

  void begin_step(const Batch& batch) override;
  StepResult finish_step() override;
  void accumulate(const Batch& batch) override;
  void set_micro_batches(std::size_t count) override;
  [[nodiscard]] std::size_t steps_in_flight() const noexcept override { return queue_->in_flight(); }
  [[nodiscard]] std::size_t max_in_flight() const noexcept override { return queue_->max_in_flight(); }
  void drain() noexcept override { queue_->drain(); }

  /// `see` is called on the first rank of each group.
  Evaluation evaluate(BatchLoader& loader, const SeeOutputs& see = {}, const Metrics& metrics = {}) override;
  [[nodiscard]] std::string explain_nonfinite(const Batch& batch) override;
  [[nodiscard]] bool keeps(const Dataset&) const noexcept override { return false; }
  void keep_data(std::span<const Dataset* const>) override {}
  void forget_data() noexcept override {}

  [[nodiscard]] const StrategyPlan& plan() const noexcept override { return plan_; }
  [[nodiscard]] Communicator& communicator() noexcept override { return communicator_; }
  [[nodiscard]] Shard shard() const noexcept override { return ranks_.shard; }
  [[nodiscard]] const GradientExchange& exchange() const noexcept override;
  [[nodiscard]] TrainingState& state() noexcept override;
  [[nodiscard]] const TrainingState& state() const noexcept override;
  [[nodiscard]] SplitCosts split() const override;

 private:
  void make_replica();
  void make_exchange();
  void make_parts(const Schedule& schedule);
  void keep_alike();
  void check_memory() const;
  void tell_plan();
  void compute(const Batch& batch);
  [[nodiscard]] Pass pass(Mode mode, const Batch& batch, std::uint64_t step, StepControl* sums);
  [[nodiscard]] FlushDenormals flush_denormals() const { return FlushDenormals(replica_->stream().threads()); }

  Communicator communicator_;
  EventSink silence_;
  EventSink& sink_;
  MirroredOptions options_;
  RankGroups ranks_;
  StrategyPlan plan_;

  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<SplitModel> model_;
  std::unique_ptr<Replica> replica_;  ///< of this rank's part of the model
  std::unique_ptr<WholeValues> whole_;
  std::unique_ptr<PlannedPartExchange> parts_;  ///< null if no data is exchanged within a pass
  std::unique_ptr<PartsExchange> exchange_;
  std::unique_ptr<PlannedRankSums> rank_sums_;  ///< null with one group
  std::unique_ptr<GradientAccumulator> accumulator_;
  std::unique_ptr<Updater> updater_;
  std::unique_ptr<ControlBlock> other_sums_;  ///< for evaluation and explain_nonfinite
  StepControl ignored_;  ///< sums of the loss on all ranks of a group except the first, which has the same sums
  std::unique_ptr<StepQueue> queue_;
  std::unique_ptr<SplitState> state_;
  HostCopy host_copy_;
  StepClock clock_;
};

}  // namespace ronda
