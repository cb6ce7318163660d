#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/denormals.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/data/loader.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/optim/schedule.hpp>
#include <ronda/runtime/strategy/control_block.hpp>
#include <ronda/runtime/strategy/evaluation.hpp>
#include <ronda/runtime/strategy/gradient_exchange.hpp>
#include <ronda/runtime/strategy/gradient_accumulator.hpp>
#include <ronda/runtime/strategy/memory_use.hpp>
#include <ronda/runtime/strategy/mirrored_options.hpp>
#include <ronda/runtime/strategy/rank_picker.hpp>
#include <ronda/runtime/strategy/replica.hpp>
#include <ronda/runtime/strategy/step_clock.hpp>
#include <ronda/runtime/strategy/step_queue.hpp>
#include <ronda/runtime/strategy/step_result.hpp>

namespace ronda {

/// Synchronous data-parallel training: every rank holds the same model, works on its part of each global batch, and
/// applies the same mean gradient, so the replicas stay equal to the bit.
///
/// `train_step` is the whole of it; a loop of one's own calls its parts by hand and gets the same bits:
///
///     Pass pass = strategy.begin_pass(batch);
///     const Tensor& outputs = strategy.forward(batch, pass);
///     const Tensor& gradient = strategy.loss(batch, pass);
///     strategy.backward(pass);
///     StepResult result = strategy.apply(strategy.reduce(pass), pass);
///
/// On the processor all that computes takes denormal numbers for zero (see FlushDenormals), layers of the user's own
/// too; when a function has returned, the caller's threads compute as they did before.
///
/// Where the model computes on a GPU, a rank a GPU, batches are the host's, and a loop of one's own begins with `const
/// Batch& here = strategy.place(batch)` and goes on with `here`. The gradients are reduced there as
/// Communicator::use_device has it: by NCCL, and then the third and later calls of train_step are one replay of what
/// the second recorded, or through the host.
class MirroredStrategy {
 public:
  /// Plans model and loss, takes all memory, sets the initial parameters and makes them rank 0's everywhere. On a GPU a
  /// communicator that knows of no device yet is told of it, by `fusion.algorithm`. Collective; errors are agreed.
  /// The sink outlives the strategy; model and loss need not, and may serve others. Throws InputError for shapes that
  /// do not fit, ranks that plan different things, and a plan beyond the memory limit.
  MirroredStrategy(Communicator communicator, const Layer& model, const Loss& loss,
                   std::unique_ptr<Optimizer> optimizer, Schedule schedule, const MirroredOptions& options,
                   EventSink* sink = nullptr);

  MirroredStrategy(const MirroredStrategy&) = delete;  // its parts know each other's places
  MirroredStrategy& operator=(const MirroredStrategy&) = delete;
  ~MirroredStrategy();

  /// One step on this rank's batch (the last micro-batch, where there are several). Collective. Allocates nothing.
  /// Throws InputError for a batch of other shapes, or with other rows, than the model was planned for, as do
  /// accumulate, begin_pass and evaluate; CommunicationError where ranks do not come or their connection fails.
  StepResult train_step(const Batch& batch);
  /// train_step in two parts, so that a GPU need not wait until the host has looked at a step: `finish_step` gives the
  /// results in the order in which steps were begun, as exact as train_step's, and waits where the step is not over.
  /// Up to most_in_flight() may be begun and not finished; on the processor that is one, and `begin_step` computes it.
  /// What a step raises reaches the others as late as its result is looked at, so all ranks begin and finish alike. A
  /// step that is not finite does not keep those from being applied that were begun after it. With steps in flight,
  /// parameters and `updates` are not to be looked at or set.
  /// @param batch  in pinned memory (LoaderOptions::staging): stays as it is until its step is finished; in other
  ///               memory: until this returns
  void begin_step(const Batch& batch);
  StepResult finish_step();
  [[nodiscard]] std::size_t steps_in_flight() const noexcept { return queue_->in_flight(); }
  [[nodiscard]] std::size_t most_in_flight() const noexcept { return queue_->max_in_flight(); }
  /// Waits for the steps in flight, whose results nobody will see: before what they read goes.
  void drain() noexcept { queue_->drain(); }
  /// Forward and backward of a micro-batch before the last one; sends nothing.
  void accumulate(const Batch& batch);

  /// `batch` where the model computes: on the processor the batch itself; on a GPU a copy, valid until the next call.
  const Batch& place(const Batch& batch) { return queue_->place(batch); }

  /// The parts of train_step. On a GPU outputs, gradients and parameters lie there; `reduce` and `apply` wait for it.
  /// Throws LogicError with steps in flight.
  [[nodiscard]] Pass begin_pass(const Batch& batch);
  const Tensor& forward(const Batch& batch, const Pass& pass);
  /// Adds the loss of the outputs to the step's sums. Returns its gradient, which `backward` begins with; what is
  /// written there, it goes on with.
  const Tensor& loss(const Batch& batch, const Pass& pass);
  void backward(const Pass& pass);
  /// Collective. Returns the sums over all ranks, valid until the next begin_pass.
  const StepControl& reduce(const Pass& pass);
  /// A step without `apply` changes nothing. Collective.
  /// @param total  as `reduce` gave it, or the caller's own, the same on all ranks
  StepResult apply(const StepControl& total, const Pass& pass);

  /// After a step that was not finite, or spoiled: computes this rank's part of it once more and tells which ranks'
  /// loss or gradients are not finite, with the first parameter that backward came to. `batch` is the one of
  /// train_step. Collective; the same on all ranks. The gradients are this rank's own then. Parameters that are not
  /// finite are named, and become 0 first, so that they are not taken for the cause: there is no training on with them.
  [[nodiscard]] std::string explain_nonfinite(const Batch& batch);

  /// One epoch of `loader`, forward only, summed over all ranks, after average_states, so that all evaluate the same
  /// model. Collective. `see`, where given, is shown each batch
  /// with its outputs (for metrics of one's own); it has values where the loader's batches do.
  using SeeOutputs = ronda::SeeOutputs;
  Evaluation evaluate(BatchLoader& loader, const SeeOutputs& see = {});

  /// After the next step that begins, all ranks' StepResult says stop. Not collective; any rank may.
  void request_stop() noexcept { raised_.stop = 1; }
  /// Whether batches may name samples of `data`: all ranks' devices keep it. The same on all ranks.
  [[nodiscard]] bool keeps(const Dataset& data) const noexcept { return queue_->keeps(data); }
  /// Lets the device keep these datasets beside or instead of others, where it has room (see keeps), until forget_data.
  /// They outlive that. Collective.
  void keep_data(std::span<const Dataset* const> data);
  /// Before they go: lets go of the datasets that the device keeps, and of their memory. Batches have values from here
  /// on. Not collective.
  void forget_data() noexcept;

  /// What this rank raises in each step that begins from now on. Not collective.
  void raise(const StepFlags& flags) noexcept { raised_ = flags; }
  [[nodiscard]] const StepFlags& raised() const noexcept { return raised_; }

  /// Not collective: what was planned.
  [[nodiscard]] std::span<const Parameter> parameters() const noexcept { return replica_->parameters(); }
  /// Elements, without padding.
  [[nodiscard]] std::size_t parameter_count() const { return elements_of(replica_->parameters()); }
  [[nodiscard]] const MemoryUse& memory() const noexcept { return memory_; }
  [[nodiscard]] const GradientExchange& gradients() const noexcept { return *exchange_; }
  [[nodiscard]] const Picks& picks() const noexcept { return picker_.answered(); }
  [[nodiscard]] bool timed_something() const noexcept { return picker_.timed_something(); }
  /// What the ranks agreed on, a line each; its hash is the plan's.
  [[nodiscard]] const std::vector<std::string>& plan_lines() const noexcept { return plan_lines_; }
  [[nodiscard]] std::string plan_hash() const;
  [[nodiscard]] std::size_t batch_capacity() const noexcept { return options_.batch_capacity; }
  [[nodiscard]] const ComputeDevice& device() const noexcept { return options_.platform.device; }
  [[nodiscard]] Communicator& communicator() noexcept { return communicator_; }

  /// A hash of all parameters in file layout, seen to be equal on all ranks. Collective. Throws Error where it is not.
  [[nodiscard]] std::string parameter_hash() const;
  /// Makes the parameters rank 0's everywhere, and what layers read of them too where that is rounded; call it after
  /// setting them (`Parameter::master`, where there is one). Collective.
  void broadcast_parameters();
  /// Shows all that exact continuation needs beside `updates()`: parameters (in float32), then what optimizer and model
  /// keep, and the loss scale.
  void visit(StateVisitor& visitor);
  /// The part of it that the model's outputs depend on: parameters, and what layers keep.
  void visit_model(StateVisitor& visitor);
  /// Steps that changed the parameters so far; the schedule and Adam's correction count by it. The same on all ranks.
  [[nodiscard]] std::uint64_t updates() const noexcept { return updates_; }
  /// For a training that goes on from a checkpoint; called after `visit` has written.
  void set_updates(std::uint64_t updates);
  /// For a training that goes on after its schedule: from the next update on, the rates of `schedule` from its step 0.
  /// Not collective; the same on all ranks.
  void set_schedule(const Schedule& schedule);
  /// From the next step on: the schedule's rates times `factor`. Not collective; the same on all ranks.
  void set_rate_factor(double factor);
  [[nodiscard]] double rate_factor() const noexcept { return rate_factor_; }
  /// Makes the optimizer's state whole on every rank, where each knows only its part of it (see NodeReduce): call it on
  /// all ranks before `visit` reads. Collective. What `visit` writes must be whole, and the same, on all ranks.
  void gather_state();
  /// Makes what layers keep with Scope::averaged the mean over the ranks, the same bits on all; `evaluate` does.
  /// Numbers that are equal on all ranks stay as they are, to the bit. Collective, except on one rank.
  void average_states();

 private:
  void plan(const Layer& model, const Loss& loss);
  void check_memory() const;
  void take_memory(const Schedule& schedule);
  void tell_plan();
  void begin_micro_batch(const Batch& batch);
  void start(const Batch& batch);
  [[nodiscard]] Pass training_pass(const Batch& batch);
  [[nodiscard]] StepQueueOptions queue_options() const;
  void round_values();
  void require_none_in_flight(std::string_view function) const;
  /// For each function that computes on the processor.
  [[nodiscard]] FlushDenormals arithmetic() const noexcept { return FlushDenormals(replica_->stream().threads()); }

  Communicator communicator_;
  EventSink silence_;
  EventSink& sink_;
  MirroredOptions options_;
  std::unique_ptr<Optimizer> optimizer_;
  RankPicker picker_;
  MemoryUse memory_;
  std::vector<std::string> plan_lines_;

  std::unique_ptr<Replica> replica_;
  std::unique_ptr<GradientExchange> exchange_;
  std::unique_ptr<GradientAccumulator> accumulator_;
  std::unique_ptr<Updater> updater_;
  std::unique_ptr<ControlBlock> step_sums_, other_sums_;  ///< the exchange's; of passes outside a step
  std::unique_ptr<StepQueue> queue_;
  HostCopy host_;

  StepClock clock_;
  StepFlags raised_;
  std::uint64_t updates_ = 0;
  double rate_factor_ = 1;
};

}  // namespace ronda
