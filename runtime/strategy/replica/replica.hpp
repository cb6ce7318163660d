#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/state.hpp>
#include <ronda/data/batch.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/layers/program.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/optim/updater.hpp>
#include <ronda/runtime/strategy/replica/replica_plan.hpp>
#include <ronda/runtime/strategy/replica/step_clock.hpp>

namespace ronda {

/// One rank's model, loss and memory on one device. Does not communicate.
///
/// Construction plans the model. The caller then provides the arenas and calls `bind`; after that the replica can
/// compute.
class Replica {
 public:
  /// Plans model and loss for batches of `rows` rows.
  /// @param samples  number of samples of a step over all ranks; scales the loss gradient
  /// @param seed     for the random numbers that layers draw in a pass
  /// @param reduce_dtype  as MirroredOptions::reduce_dtype
  /// Throws as ReplicaPlan does, and InputError for layers that this device does not support.
  Replica(const Layer& model, const Loss& loss, ComputeDevice device, std::shared_ptr<Primitives> primitives,
          Picker& picker, std::span<const Field> fields, std::size_t rows, std::size_t samples, std::uint64_t seed,
          std::optional<DType> reduce_dtype = {});
  /// Uses a program planned earlier: a part of a model, on the CPU.
  Replica(Program program, ComputeDevice device, std::shared_ptr<Primitives> primitives, std::size_t samples,
          std::uint64_t seed);
  Replica(const Replica&) = delete;  // its parameters point to its memory

  [[nodiscard]] const ReplicaPlan& plan() const noexcept { return plan_; }
  [[nodiscard]] const Program& program() const noexcept { return program_; }
  /// For callers that bind other inputs than a batch.
  [[nodiscard]] Program& program() noexcept { return program_; }
  [[nodiscard]] const ComputeDevice& device() const noexcept { return device_; }
  [[nodiscard]] Stream& stream() const noexcept { return *device_.stream; }

  // ---- memory
  // --------------------------------------------------------------------------------------------------------

  /// Allocates the replica's own memory: activations, layer states, `states` optimizer states, and, if layers read a
  /// half type, the float32 master values. Throws ResourceError.
  /// @param elements       range whose optimizer states are kept here (the others are updated elsewhere); nullopt: all
  /// @param keeps_average  also allocate an arena for an average of the trained values
  void take_memory(std::size_t states, const std::optional<Range>& elements, bool keeps_average);
  /// Sets the memory that other ranks may access: the values that layers read, the gradients, and the lists of touched
  /// rows of sparse tables.
  /// @param sums  gradient sums over micro-batches and ranks, if their type differs from the type that layers write
  void take_arenas(Buffer values, Buffer gradients, Buffer lists, Buffer sums = {});
  /// Declares that the ranks of the node share this memory for their values (see shared_values.hpp), and sets the
  /// shared arena of the average.
  /// @param average  empty: no average is kept
  /// @param part     range of elements that this rank writes when all ranks of the node write together
  void share_values(Buffer average, const Range& part);
  [[nodiscard]] bool shares_values() const noexcept { return part_.has_value(); }
  /// Range of elements that this rank writes: its part of shared values; all elements if the values are not shared.
  [[nodiscard]] Range written() const noexcept { return part_.value_or(Range{0, plan_.elements()}); }
  [[nodiscard]] const Buffer& values() const noexcept { return values_; }
  [[nodiscard]] const Buffer& gradients() const noexcept { return gradients_; }
  /// Buffer that is summed over the ranks: the gradients, or their float32 copy if the plan widens them.
  [[nodiscard]] const Buffer& reduced() const noexcept { return plan_.widens() ? sums_ : gradients_; }
  /// The trained values, float32.
  [[nodiscard]] const Buffer& trained() const noexcept { return plan_.mixed() ? masters_ : values_; }
  /// Average of the trained values; empty if none is kept.
  [[nodiscard]] const Buffer& average() const noexcept { return average_; }
  /// Arena of all parameters except sparse tables, for an updater.
  [[nodiscard]] ArenaRange dense_arena() const noexcept;
  /// Arena of the elements in `kept()`, for a model without sparse tables.
  [[nodiscard]] ArenaRange kept_arena() const noexcept;
  /// Arena of the sparse tables; empty if the model has none.
  [[nodiscard]] ArenaRange sparse_arena() const noexcept;
  /// Rows of the table plan().tables()[i] that this step has touched.
  [[nodiscard]] TouchedRows& touched(std::size_t i) noexcept { return touched_[i]; }
  [[nodiscard]] LayerArenas layer_arenas() const noexcept;
  /// State of the dynamic loss scale for float16 gradients, in the device's memory; null for other types.
  [[nodiscard]] LossScale* more_scale() const noexcept { return reinterpret_cast<LossScale*>(scale_.data()); }
  [[nodiscard]] float loss_scale() const noexcept { return loss_scale_; }

  /// Passes the addresses of the memory to the program.
  void bind();
  /// Arguments for binding an optimizer, with a group for each parameter.
  /// @param group_of  maps a parameter's name to its group; null: one group
  [[nodiscard]] OptimizerBindings bindings(const std::function<ParameterGroup(std::string_view)>& group_of) const;
  /// Arenas of the optimizer states, each with the elements in `kept()`.
  [[nodiscard]] std::vector<float*> states() const;
  [[nodiscard]] Range kept() const noexcept { return kept_.value_or(Range{0, plan_.elements()}); }
  [[nodiscard]] bool keeps_all_states() const noexcept { return !kept_; }
  /// Draws the initial parameters. Does not yet round them to the values that layers read.
  void initialize(Initializer usual, std::uint64_t seed);

  [[nodiscard]] std::span<const Parameter> parameters() const noexcept { return parameters_; }
  /// Visits the parameters, in float32.
  void visit_parameters(StateVisitor& visitor) const;
  /// Visits the average of each parameter, if one is kept: `conv1.weight.ema`.
  void visit_average(StateVisitor& visitor) const;
  /// Visits the states that layers keep from step to step.
  void visit_layer_states(StateVisitor& visitor) const;
  /// Visits the other states that exact continuation needs: the loss scale and the layer states.
  void visit_states(StateVisitor& visitor) const;

  // ---- computing
  // -----------------------------------------------------------------------------------------------------

  /// Describes a pass over `batch`, which must be in the memory of the model's device.
  /// @param sums  where the loss adds its sums, in the memory of the device
  [[nodiscard]] Pass pass(Mode mode, const Batch& batch, std::uint64_t step, StepControl* sums) const;
  [[nodiscard]] const Tensor& forward(const Batch& batch, const Pass& pass);
  /// Computes the loss of the outputs. Returns the gradient that `backward` starts from.
  const Tensor& loss(const Batch& batch, const Pass& pass) { return program_.loss(batch.target(), pass); }
  void backward(const Pass& pass) { program_.backward(pass); }
  /// Clears the lists of touched rows and the gradients of sparse tables. Call before the first backward pass of a
  /// step.
  void clear_sparse_gradients();
  /// Forward, loss and backward; calls `pass.on_ready` for each gradient.
  void compute(const Batch& batch, const Pass& pass, StepClock& clock);
  /// Forward and loss. Returns the outputs.
  const Tensor& evaluate(const Batch& batch, const Pass& pass);

  /// Calls `body`, which may compute, and restores the layer states afterwards.
  void with_states_kept(FunctionRef<void()> body);
  /// Measures the cost of each operation on random samples. Overwrites the gradients; restores the states.
  [[nodiscard]] std::vector<OperationCosts> measure(std::span<const Field> fields);

  /// Throws InputError if the shapes or rows of `batch` differ from those that the model was planned for.
  void check(const Batch& batch) const;

 private:
  ComputeDevice device_;
  std::shared_ptr<Primitives> primitives_;
  std::uint64_t seed_;
  float loss_scale_;
  Program program_;
  ReplicaPlan plan_;
  std::vector<Tensor> inputs_;  ///< inputs of a pass
  Buffer values_, gradients_, sums_, lists_, activations_, average_;
  std::vector<TouchedRows> touched_;  ///< one for each sparse table, stored in `lists_`
  std::vector<Buffer> states_;        ///< optimizer states
  std::vector<Buffer> layer_states_;
  Buffer masters_;             ///< float32 master values, if `values_` has a half type; same element count
  Buffer scale_;               ///< a LossScale, if gradients are float16
  std::optional<Range> part_;  ///< set if the node's ranks share the values
  std::optional<Range> kept_;  ///< elements of each of `states_`; nullopt: all
  std::vector<Parameter> parameters_;
};

/// Throws InputError if a batch's field differs from the one that the model was planned for.
void require_planned(const TensorDesc& planned, const TensorDesc& found);
/// Fills a float32 tensor with numbers from 0 to 1, the same for the same seed and name; leaves other types unchanged.
void draw_uniform(const Tensor& tensor, std::uint64_t seed, const std::string& stream);

/// Total number of elements, without padding.
[[nodiscard]] std::size_t elements_of(std::span<const Parameter> parameters);
/// Hash of all parameters in file layout.
[[nodiscard]] std::string hash_of(std::span<const Parameter> parameters, HostCopy& host);

}  // namespace ronda
