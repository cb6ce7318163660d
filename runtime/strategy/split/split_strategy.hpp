#pragma once
#include <cstddef>
#include <memory>
#include <optional>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/step_control.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/optim/schedule.hpp>
#include <ronda/optim/updater.hpp>
#include <ronda/runtime/strategy/parts/rank_groups.hpp>
#include <ronda/runtime/strategy/step/mirrored_options.hpp>
#include <ronda/runtime/strategy/step/strategy.hpp>

namespace ronda {

class PartsExchange;
class PlannedPartExchange;
class PlannedRankSums;
class SplitModel;
class WholeModel;

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

  [[nodiscard]] SplitCosts split() const override;

 private:
  void check(const Batch& batch) const override { replica_->check(batch); }
  void compute(const Batch& here) override;
  void require_micro_batches(std::size_t count) const override;
  void begin_evaluation(std::size_t batches) override;
  void end_evaluation() override;
  /// The outputs are shown on the first rank of each group.
  Outputs evaluate_batch(const Batch& given, StepControl* sums) override;
  std::optional<double> compute_alone(const Batch& given, const OnReady& on_ready, ControlBlock& sums) override;

  void make_replica();
  [[nodiscard]] std::unique_ptr<PartsExchange> make_exchange();
  [[nodiscard]] std::unique_ptr<StepRunner> make_runner(std::unique_ptr<GradientExchange> exchange,
                                                        std::unique_ptr<PlannedRankSums> rank_sums,
                                                        SumOverParts& over_parts, const Schedule& schedule);
  void keep_alike(PartsExchange& exchange);
  void tell_plan();
  [[nodiscard]] StepControl* told_sums(StepControl* sums) noexcept;

  RankGroups ranks_;
  std::unique_ptr<SplitModel> model_;
  std::unique_ptr<WholeModel> whole_;
  std::unique_ptr<PlannedPartExchange> parts_;  ///< null if no data is exchanged within a pass
  StepControl ignored_;  ///< sums of the loss on all ranks of a group except the first, which has the same sums
};

}  // namespace ronda
