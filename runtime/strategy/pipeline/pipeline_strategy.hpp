#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/layers/program.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/optim/schedule.hpp>
#include <ronda/optim/updater.hpp>
#include <ronda/runtime/strategy/parts/rank_groups.hpp>
#include <ronda/runtime/strategy/step/mirrored_options.hpp>
#include <ronda/runtime/strategy/step/strategy.hpp>

namespace ronda {

class PlannedRankSums;
class Stage;
class StagedModel;
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

  [[nodiscard]] std::vector<StageCosts> stages() override;

  /// This rank's stage, from 0.
  [[nodiscard]] std::size_t stage() const noexcept { return ranks_.part; }

 private:
  void check(const Batch& batch) const override;
  void compute(const Batch& here) override;
  void require_micro_batches(std::size_t count) const override;
  void begin_evaluation(std::size_t batches) override { to_evaluate_ = batches; }
  void end_evaluation() override;
  /// The outputs are on the ranks of the last stage.
  Outputs evaluate_batch(const Batch& given, StepControl* sums) override;
  std::optional<double> compute_alone(const Batch& given, const OnReady& on_ready, ControlBlock& sums) override;

  void plan_stages(const Layer& model, const Loss& loss, RankPicker& picker);
  void make_replica(const Loss& loss, const Picks& answered);
  [[nodiscard]] std::unique_ptr<StepRunner> make_runner(std::unique_ptr<GradientExchange> exchange,
                                                        std::unique_ptr<PlannedRankSums> rank_sums,
                                                        SumOverParts& over_stages, const Schedule& schedule);

  std::size_t stage_count_ = 0;
  RankGroups ranks_;  ///< a group is a pipeline, and a part a stage
  std::unique_ptr<StagedModel> model_;
  std::vector<Program> more_;  ///< until they are moved into the stage
  std::unique_ptr<WholeModel> whole_;
  std::unique_ptr<Stage> stage_;
  std::size_t to_evaluate_ = 0;  ///< batches of an evaluation that has not begun
};

}  // namespace ronda
