#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/denormals.hpp>
#include <ronda/core/event_sink.hpp>
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

class PipelineState;
class Stage;
class StagedModel;
class PartsExchange;
class WholeModel;

/// Pipeline parallelism: the model is cut into stages, each rank computes one stage, and a step's micro-batches pass
/// through all stages. With more ranks than stages there are several pipelines, which share each global batch as the
/// ranks of a MirroredStrategy do, and average the gradients of each stage.
///
/// A stage followed by w stages does the forward pass of w micro-batches, then alternates forward and backward, and
/// finally does the w remaining backward passes. Backward has two halves: the first ends with the gradients of the
/// stage's inputs; with v stages before this one, the second half follows v micro-batches later. Three stages, five
/// micro-batches; F2, B2 and W2 are forward and the halves of backward of micro-batch 2:
///
///     stage 0   F0 F1 F2       B0 W0 F3 B1 W1 F4 B2 W2 B3 W3 B4 W4
///     stage 1      F0 F1    B0 F2 B1 W0 F3 B2 W1 F4 B3 W2 B4 W3 W4
///     stage 2         F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 F4 B4 W2 W3 W4
///
/// With S stages, a stage therefore holds the activations of S micro-batches, however many a step has. After the first
/// stage it also holds, from B to W, a gradient of the size of its output for each operation with two halves. A rank is
/// idle for predicted_bubble of a step, the *bubble*. Gradients are summed over the micro-batches, in their order; one
/// update follows, by the rules of a mirrored step: results are those of a MirroredStrategy with as many micro-batches,
/// to rounding. (Narayanan et al., "PipeDream: generalized pipeline parallelism for DNN training", SOSP 2019: 1F1B;
/// "Memory-efficient pipeline-parallel DNN training", ICML 2021: PipeDream-Flush; Qi, Wan, Huang and Lin, "Zero bubble
/// pipeline parallelism", ICLR 2024: ZB-H1.)
///
/// The ranks of one pipeline receive the same batches. Each stores gradients, optimizer states and activations only of
/// its stage, and the values of all parameters; those of other stages are updated between steps: see PipelineState.
/// Only for CPUs and float32.
class PipelineStrategy final : public Strategy {
 public:
  /// As MirroredStrategy's. Also throws InputError for unsupported cases: GPUs, half types, sparse gradients, a number
  /// of ranks that is not a multiple of the number of stages, and cuts that cannot be made.
  /// @param options  `pipeline` defines the cuts; `batch_capacity` is the pipeline's
  PipelineStrategy(Communicator communicator, const Layer& model, const Loss& loss,
                   std::unique_ptr<Optimizer> optimizer, Schedule schedule, const MirroredOptions& options,
                   EventSink* sink = nullptr);
  ~PipelineStrategy() override;

  void begin_step(const Batch& batch) override;
  StepResult finish_step() override;
  void accumulate(const Batch& batch) override;
  void set_micro_batches(std::size_t count) override;
  [[nodiscard]] std::size_t steps_in_flight() const noexcept override { return queue_->in_flight(); }
  [[nodiscard]] std::size_t max_in_flight() const noexcept override { return queue_->max_in_flight(); }
  void drain() noexcept override { queue_->drain(); }

  /// `see` is called on the ranks of the last stage, which have the outputs.
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
  [[nodiscard]] std::vector<StageCosts> stages() override;

  /// This rank's stage, from 0.
  [[nodiscard]] std::size_t stage() const noexcept { return ranks_.part; }

 private:
  void plan_stages(const Layer& model, const Loss& loss, RankPicker& picker);
  void make_replica(const Loss& loss, const Picks& answered);
  void check_memory() const;
  void make_parts(const Schedule& schedule);
  void check(const Batch& batch) const;
  void compute(const Batch& batch);
  [[nodiscard]] OnReady listen(std::size_t micro_batch);
  [[nodiscard]] Pass pass(Mode mode, const Batch& batch, std::uint64_t step, StepControl* sums) const;
  [[nodiscard]] FlushDenormals flush_denormals() const { return FlushDenormals(replica_->stream().threads()); }

  Communicator communicator_;
  EventSink silence_;
  EventSink& sink_;
  MirroredOptions options_;
  std::size_t stage_count_ = 0;
  RankGroups ranks_;  ///< a group is a pipeline, and a part a stage
  StrategyPlan plan_;

  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<StagedModel> model_;
  std::unique_ptr<Replica> replica_;  ///< of this rank's stage
  std::vector<Program> more_;         ///< until they are moved into the stage
  std::unique_ptr<WholeModel> whole_;
  std::unique_ptr<PartsExchange> exchange_;
  std::unique_ptr<PlannedRankSums> rank_sums_;  ///< null with one pipeline
  std::unique_ptr<GradientAccumulator> accumulator_;
  std::unique_ptr<Updater> updater_;
  std::unique_ptr<ControlBlock> other_sums_;  ///< for evaluation and explain_nonfinite
  std::unique_ptr<StepQueue> queue_;
  std::unique_ptr<PipelineState> state_;
  std::unique_ptr<Stage> stage_;
  HostCopy host_copy_;
  StepClock clock_;
};

}  // namespace ronda
