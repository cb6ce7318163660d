#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/core/denormals.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/data/loader.hpp>
#include <ronda/layers/cast.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/layers/planner.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/optim/schedule.hpp>
#include <ronda/runtime/strategy/control_block.hpp>
#include <ronda/runtime/strategy/device_step.hpp>
#include <ronda/runtime/strategy/gradient_accumulator.hpp>
#include <ronda/runtime/strategy/memory_use.hpp>
#include <ronda/runtime/strategy/node_update.hpp>
#include <ronda/runtime/strategy/rank_picker.hpp>

namespace ronda {

struct MirroredOptions {
  /// Everything at its default, for batches of `data` as `plan` cuts them.
  [[nodiscard]] static MirroredOptions for_data(const Dataset& data, const BatchPlan& plan);

  std::vector<Field> fields;       ///< of the training data; `input` is what the model is planned for
  std::size_t batch_capacity = 0;  ///< rows of a rank's micro-batch
  std::size_t global_batch = 0;    ///< samples of a step over all ranks, for the scale of the loss gradient
  std::size_t micro_batches = 1;   ///< a step; their gradients are summed before the one reduction

  Initializer initializer = Initializer::he_normal;
  std::uint64_t seed = 1;
  double clip_norm = 0;          ///< 2-norm that the mean gradient is clipped to; 0: no clipping
  bool check_gradients = false;  ///< look at all reduced gradients for numbers that are not finite, before each update
  FusionOptions fusion;
  /// Parameters from here on, in bytes, are updated by parts where all ranks are on one node (see NodeUpdate): smaller
  /// ones stay in the caches, where that saves nothing.
  std::size_t node_update_bytes = std::size_t{16} << 20;
  int threads = 1;                  ///< of this rank
  std::size_t memory_limit = 0;     ///< bytes a rank, without what others keep (checkpoints, audits); 0: none
  std::size_t steps_in_flight = 1;  ///< on a GPU: that may be begun before the oldest of them is finished
  bool record_steps = true;         ///< on a GPU: replay the step from the third on; the bits are the same
  ComputeDevice device;             ///< empty: the processor, with `threads`
  /// Of the device; null: oneDNN. Those of a half type store activations, parameters and gradients in it (on a GPU
  /// alone); the parameters that are trained are float32.
  std::shared_ptr<Primitives> primitives;
  MakeDeviceUpdate device_update = make_cuda_update;  ///< how a device that is not the processor updates
  /// Datasets that a device is to keep, where it has room, so that batches may name their samples alone (BatchLoader,
  /// BatchContents::samples): see MirroredStrategy::keeps. They stay until the strategy goes, or forget_data.
  std::vector<const Dataset*> device_data;
  double device_data_share = 0.5;  ///< of the device's memory that is free beside the model, at most, for each dataset
  GatherRows gather = cuda_gather;
  Picks picks;            ///< what was chosen in an earlier run
  std::string plan_name;  ///< where `picks` are from, if nothing may be timed: see RankPicker
  std::function<ParameterGroup(std::string_view name)> group_of;  ///< null: one group
};

/// The part of the data that is this rank's. Not collective.
[[nodiscard]] Shard shard_of(const Communicator& communicator) noexcept;

/// What a step was, over all ranks.
struct StepResult {
  double loss = 0, accuracy = 0;  ///< exact means over the global batch, before the update
  double weight = 0;              ///< sum of the samples' weights
  double learning_rate = 0;
  double gradient_norm = 0;  ///< before clipping; only computed where clipping asks for it
  bool stop = false;         ///< some rank asked to stop after this step
  bool nonfinite = false;    ///< the loss, or a gradient where they are checked, was not finite: there was no update
  bool spoiled = false;      ///< there was an update, and what it left of parameters or states is not all finite
  bool overflow = false;     ///< some sum of gradients was beyond float16: no update, and the loss scale is halved
  double loss_scale = 1;     ///< that follows float16 gradients, for the next step; 1 for other types
  StepFlags flags = {};      ///< how many ranks raised each
  StepTimes times;           ///< without data
};

struct Evaluation {
  double loss = 0, accuracy = 0;  ///< exact, every sample once
};

/// Synchronous data-parallel training: every rank holds the same model, works on its part of each global batch, and
/// applies the same mean gradient, so the replicas stay equal to the bit.
///
/// `train_step` is the whole of it; a loop of one's own calls its parts by hand and gets the same bits:
///
///     Pass pass = strategy.begin_pass(batch);
///     const Tensor& outputs = strategy.forward(batch.input(), pass);
///     const Tensor& gradient = loss.forward_backward(outputs, batch.target(), pass);
///     strategy.backward(gradient, pass);
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
  /// Model, loss and sink outlive the strategy. Throws InputError for shapes that do not fit, ranks that plan different
  /// things, and a plan beyond the memory limit.
  MirroredStrategy(Communicator communicator, Layer& model, Loss& loss, std::unique_ptr<Optimizer> optimizer,
                   Schedule schedule, MirroredOptions options, EventSink* sink = nullptr);

  MirroredStrategy(const MirroredStrategy&) = delete;  // its parts know each other's places
  MirroredStrategy& operator=(const MirroredStrategy&) = delete;
  ~MirroredStrategy() { drain(); }

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
  [[nodiscard]] std::size_t steps_in_flight() const noexcept {
    return device_ ? device_->in_flight() : computed_ ? 1 : 0;
  }
  [[nodiscard]] std::size_t most_in_flight() const noexcept { return device_ ? device_->most_in_flight() : 1; }
  /// Waits for the steps in flight, whose results nobody will see: before what they read goes.
  void drain() noexcept {
    if (device_) device_->drain();
  }
  /// Forward and backward of a micro-batch before the last one; sends nothing.
  void accumulate(const Batch& batch);

  /// `batch` where the model computes: on the processor the batch itself; on a GPU a copy, valid until the next call.
  const Batch& place(const Batch& batch) { return device_ ? device_->place(batch) : batch; }

  /// The parts of train_step. On a GPU outputs, gradients and parameters lie there; `reduce` and `apply` wait for it.
  [[nodiscard]] Pass begin_pass(const Batch& batch);
  const Tensor& forward(const Tensor& input, const Pass& pass);
  void backward(const Tensor& output_gradient, const Pass& pass);
  /// Collective. Returns the sums over all ranks, valid until the next begin_pass.
  const StepControl& reduce(const Pass& pass);
  StepResult apply(const StepControl& total, const Pass& pass);

  /// After a step that was not finite, or spoiled: computes this rank's part of it once more and tells which ranks'
  /// loss or gradients are not finite, with the first parameter that backward came to. `batch` is the one of
  /// train_step. Collective; the same on all ranks. The gradients are this rank's own then. Parameters that are not
  /// finite are named, and become 0 first, so that they are not taken for the cause: there is no training on with them.
  [[nodiscard]] std::string explain_nonfinite(const Batch& batch);

  /// One epoch of `loader`, forward only, summed over all ranks, after average_states, so that all evaluate the same
  /// model. Collective. `see`, where given, is shown each batch
  /// with its outputs (for metrics of one's own); it has values where the loader's batches do.
  using SeeOutputs = std::function<void(const Batch& batch, const Tensor& outputs)>;
  Evaluation evaluate(BatchLoader& loader, const SeeOutputs& see = {});

  /// After the next step that begins, all ranks' StepResult says stop. Not collective; any rank may.
  void request_stop() noexcept { raised_.stop = 1; }
  /// Whether batches may name samples of `data`: all ranks' devices keep it. The same on all ranks.
  [[nodiscard]] bool keeps(const Dataset& data) const noexcept { return device_ && device_->keeps(data); }
  /// Before they go: lets go of the datasets that the device keeps, and of their memory. Batches have values from here
  /// on. Not collective.
  void forget_data() noexcept;

  /// What this rank raises in each step that begins from now on. Not collective.
  void raise(const StepFlags& flags) noexcept { raised_ = flags; }
  [[nodiscard]] const StepFlags& raised() const noexcept { return raised_; }

  /// Not collective: what was planned.
  [[nodiscard]] std::span<const Parameter> parameters() const noexcept { return parameters_; }
  [[nodiscard]] std::size_t parameter_count() const;  ///< elements, without padding
  [[nodiscard]] const MemoryUse& memory() const noexcept { return memory_; }
  [[nodiscard]] const FusionBuffer& gradients() const noexcept { return *gradients_; }
  [[nodiscard]] const Picks& picks() const noexcept { return picker_.answered(); }
  [[nodiscard]] bool timed_something() const noexcept { return picker_.timed_something(); }
  /// What the ranks agreed on, a line each; its hash is the plan's.
  [[nodiscard]] const std::vector<std::string>& plan_lines() const noexcept { return plan_lines_; }
  [[nodiscard]] std::string plan_hash() const;
  [[nodiscard]] std::size_t batch_capacity() const noexcept { return options_.batch_capacity; }
  [[nodiscard]] Communicator& communicator() noexcept { return communicator_; }

  /// A hash of all parameters in file layout, seen to be equal on all ranks. Collective. Throws Error where it is not.
  [[nodiscard]] std::string parameter_hash() const;
  /// Makes the parameters rank 0's everywhere, and what layers read of them too where that is rounded; call it after
  /// setting them (`Parameter::master`, where there is one). Collective.
  void broadcast_parameters();
  /// Shows all that exact continuation needs beside `updates()`: parameters (in float32), then what optimizer and model
  /// keep, and the loss scale.
  void visit(StateVisitor& visitor);
  /// Steps that changed the parameters so far; the schedule and Adam's correction count by it. The same on all ranks.
  [[nodiscard]] std::uint64_t updates() const noexcept { return updates_; }
  /// For a training that goes on from a checkpoint; called after `visit` has written.
  void set_updates(std::uint64_t updates);
  /// Makes the optimizer's state whole on every rank, where each knows only its part of it (see NodeUpdate): call it on
  /// all ranks before `visit` reads. Collective. What `visit` writes must be whole, and the same, on all ranks.
  void gather_state();
  /// Makes what layers keep with Scope::averaged the mean over the ranks, the same bits on all; `evaluate` does.
  /// Numbers that are equal on all ranks stay as they are, to the bit. Collective, except on one rank.
  void average_states();

 private:
  void plan();
  void check_memory();
  void plan_arena();
  void take_memory();
  void take_arenas();
  [[nodiscard]] FusionOptions take_device_arenas();
  [[nodiscard]] FusionOptions take_host_arenas();
  void take_data();
  [[nodiscard]] std::string why_no_room_for(const Dataset& data, std::size_t sharers);
  void bind();
  void prepare_device_step(const OptimizerBindings& bindings);
  void set_initial_values();
  void check(const Batch& batch) const;
  [[nodiscard]] Pass pass_on(const Batch& batch);
  [[nodiscard]] Pass reporting(const Pass& pass);
  const Tensor& outputs_of(const Tensor& input, const Pass& pass);
  StepResult reduce_and_apply(const Pass& pass);
  StepResult update(const StepControl& total, const Pass& pass, NodeUpdate::Gradients gradients);
  void begin_on_device(const Batch& batch);
  void accumulate_on_device(const Batch& batch);
  void pass_on_device();
  [[nodiscard]] bool is_last_micro_batch() const noexcept { return micro_batch_ + 1 == options_.micro_batches; }
  StepResult result_on_device(const DeviceStep::Result& found);
  [[nodiscard]] StepResult result_of(const StepControl& total) const;
  [[nodiscard]] Tensor shown(const Tensor& tensor) const { return device_ ? device_->on_host(tensor) : tensor; }
  /// For each function that computes on the processor.
  [[nodiscard]] FlushDenormals arithmetic() const noexcept { return FlushDenormals(device_ ? 1 : options_.threads); }
  [[nodiscard]] std::size_t elements() const noexcept { return arena_bytes_ / size_of(dtype_); }
  [[nodiscard]] bool mixed() const noexcept { return dtype_ != DType::float32; }
  [[nodiscard]] const Buffer& trained() const noexcept { return mixed() ? masters_ : values_; }
  [[nodiscard]] std::string clear_nonfinite_parameters();
  void lap(double StepTimes::*phase) noexcept;

  Communicator communicator_;
  EventSink silence_;
  EventSink& sink_;
  Layer& model_;
  Loss& loss_;
  std::unique_ptr<Optimizer> optimizer_;
  Schedule schedule_;
  MirroredOptions options_;
  ComputeDevice compute_;
  std::shared_ptr<Primitives> primitives_;
  RankPicker picker_;
  Planner planner_;
  float loss_scale_;

  TensorDesc input_;  ///< of the model
  std::vector<GradientSlot> slots_;
  std::size_t arena_bytes_ = 0;   ///< of gradients, and of the values that layers read
  DType dtype_ = DType::float32;  ///< of these
  std::optional<Cast> cast_;      ///< of the input, where that is not `dtype_`
  BufferPlan buffers_;
  MemoryUse memory_;
  std::vector<std::string> plan_lines_;
  Buffer values_, gradient_arena_, states_, activations_;
  Buffer masters_;  ///< float32, where values are of a half type; as many elements
  Buffer scale_;    ///< a LossScale, where gradients are float16
  std::vector<Parameter> parameters_;
  std::unique_ptr<DeviceStep> device_;       ///< null: on the processor
  std::unique_ptr<NodeUpdate> node_update_;  ///< null: every rank updates everything
  std::unique_ptr<FusionBuffer> gradients_;
  std::unique_ptr<ControlBlock> control_;     ///< of steps: the fusion buffer's
  std::unique_ptr<ControlBlock> evaluation_;  ///< of passes outside a step
  std::unique_ptr<GradientAccumulator> accumulator_;

  std::uint64_t updates_ = 0;
  std::size_t micro_batch_ = 0;
  std::optional<StepResult> computed_;  ///< on the processor: begun and not finished
  StepFlags raised_;
  StepTimes times_;
  double last_lap_ = 0;
};

}  // namespace ronda
