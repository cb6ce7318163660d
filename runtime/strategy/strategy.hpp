#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/data/loader.hpp>
#include <ronda/runtime/strategy/evaluation.hpp>
#include <ronda/runtime/strategy/gradient_exchange.hpp>
#include <ronda/runtime/strategy/split_costs.hpp>
#include <ronda/runtime/strategy/stage_costs.hpp>
#include <ronda/runtime/strategy/step_result.hpp>
#include <ronda/runtime/strategy/strategy_plan.hpp>
#include <ronda/runtime/strategy/training_state.hpp>

namespace ronda {

/// How ranks make a training step together. The trainer, its hooks and checkpoints know strategies only by this.
///
/// A strategy is made for one model, one loss and one size of batch. It has taken all its memory then: a step allocates
/// nothing. On each rank one thread uses it. All ranks begin and finish the same steps in the same order.
class Strategy {
 public:
  Strategy() = default;
  Strategy(const Strategy&) = delete;  // its members hold pointers to each other
  Strategy& operator=(const Strategy&) = delete;
  virtual ~Strategy() = default;

  // ---- the plan; not collective

  [[nodiscard]] virtual const StrategyPlan& plan() const noexcept = 0;
  [[nodiscard]] virtual Communicator& communicator() noexcept = 0;
  /// The part of each global batch that this rank computes.
  [[nodiscard]] virtual Shard shard() const noexcept = 0;
  /// The part of a test that this rank computes.
  [[nodiscard]] virtual Shard test_shard() const noexcept { return shard(); }
  /// How the ranks exchange gradients: for reports.
  [[nodiscard]] virtual const GradientExchange& exchange() const noexcept = 0;

  // ---- steps

  /// One step on this rank's batch. With micro-batches: `accumulate` with all but the last, then this with the last.
  /// Collective. Throws InputError for a batch with other shapes, or another number of rows, than the plan's, as
  /// accumulate and evaluate do; CommunicationError if a rank does not come in time or a connection fails.
  StepResult train_step(const Batch& batch);
  /// train_step in two parts, so that a GPU does not wait for the host. Results come in the order of begin_step. At
  /// most max_in_flight() steps may be unfinished; on the processor that is one, and begin_step does all the work.
  ///
  /// Flags that a rank raises reach the others with the step's result. If a step is not finite, the later steps that
  /// were begun already are still applied. While steps are in flight, parameters and `updates` are neither read nor
  /// set.
  /// @param batch  in pinned memory (LoaderOptions::staging): must not change until its step is finished; in other
  ///               memory: until this returns
  virtual void begin_step(const Batch& batch) = 0;
  virtual StepResult finish_step() = 0;
  /// Forward and backward of a micro-batch before the last one. No communication but that of layers, a SyncBatchNorm's.
  virtual void accumulate(const Batch& batch) = 0;
  /// Of the steps that begin from now on, this rank's; others may have other numbers. 1 to any number where the
  /// strategy was made for several, otherwise 1. Not collective. Throws LogicError within a step; InputError where the
  /// model's layers or the device need the same number on all ranks.
  virtual void set_micro_batches(std::size_t count) = 0;
  /// Before a step begins, the `step`-th (from 0) of an epoch of `steps`: the number of the step of that epoch whose
  /// samples this rank is to compute, mostly the same. Nothing: it computes none in the step that begins next, whatever
  /// its batches are. Not collective.
  [[nodiscard]] virtual std::optional<std::size_t> samples_for(std::size_t step, std::size_t /*steps*/) { return step; }
  [[nodiscard]] virtual std::size_t steps_in_flight() const noexcept = 0;
  [[nodiscard]] virtual std::size_t max_in_flight() const noexcept = 0;
  /// Waits for all steps in flight and drops their results: before the data that they read is freed.
  virtual void drain() noexcept = 0;

  /// Where ranks make steps of their own, the step that begins next ends with equal replicas, and its result tells of
  /// all steps since the last such one. Called on all ranks alike. Other strategies' steps all do.
  virtual void synchronise_next() noexcept {}

  /// The flags that this rank raises in each step that begins from now on. Not collective.
  void raise(const StepFlags& flags) noexcept { raised_ = flags; }
  [[nodiscard]] const StepFlags& raised() const noexcept { return raised_; }
  /// Raises `stop`: StepResult::stop is then set on all ranks, in the next step that begins. Any rank may.
  void request_stop() noexcept { raised_.stop = 1; }

  // ---- beside steps

  /// One epoch of `loader`, forward only, summed over all ranks. States are averaged first, so all ranks evaluate the
  /// same model; if an average of the parameters is kept, that is evaluated. Collective. Throws InputError where no
  /// sample has a weight.
  /// @param see      if given: is called with each batch and its outputs. The batch has values unless the loader gives
  ///                 the numbers of samples alone (BatchContents::samples)
  /// @param metrics  what to measure beside the loss, the same on all ranks; `evaluate(loader, {}, {&top5})`. Throws
  ///                 InputError where one does not take the model's outputs or targets
  using SeeOutputs = ronda::SeeOutputs;
  virtual Evaluation evaluate(BatchLoader& loader, const SeeOutputs& see = {}, const Metrics& metrics = {}) = 0;
  /// After a step whose result says nonfinite or spoiled: computes this rank's part of it again, without reduction.
  /// Returns which ranks have a loss or a gradient that is not finite, and the first such parameter in the order of
  /// backward. Collective; the same text on all ranks. Parameters that are not finite are named and set to 0, so that
  /// they are not taken for the cause: training cannot go on after that. Gradients are this rank's own then.
  /// @param batch  of that step
  [[nodiscard]] virtual std::string explain_nonfinite(const Batch& batch) = 0;

  /// Whether `data` lies in device memory on all ranks. Then a batch may hold numbers of its samples instead of values.
  /// The same on all ranks.
  [[nodiscard]] virtual bool keeps(const Dataset& data) const noexcept = 0;
  /// Copies datasets to the device, where it has room (see keeps). They must live until forget_data. Collective.
  virtual void keep_data(std::span<const Dataset* const> data) = 0;
  /// Frees the datasets in device memory: before they are destroyed. From then on batches hold values. Not collective.
  virtual void forget_data() noexcept = 0;

  /// What the stages of a pipeline have cost so far; empty where the model is not cut. Collective.
  [[nodiscard]] virtual std::vector<StageCosts> stages() { return {}; }

  /// What splitting its operations over ranks has cost so far. Not collective.
  [[nodiscard]] virtual SplitCosts split() const { return {}; }

  // ---- what it keeps from step to step

  [[nodiscard]] virtual TrainingState& state() noexcept = 0;
  [[nodiscard]] virtual const TrainingState& state() const noexcept = 0;

  // ---- short for plan() and state()

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

 private:
  StepFlags raised_;
};

}  // namespace ronda
