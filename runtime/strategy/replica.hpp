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
#include <ronda/core/compute_device.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/core/host_copy.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/touched_rows.hpp>
#include <ronda/data/batch.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/layers/program.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/optim/updater.hpp>
#include <ronda/runtime/strategy/replica_plan.hpp>
#include <ronda/runtime/strategy/step_clock.hpp>

namespace ronda {

/// One rank's model, loss and memory on one device. Knows no ranks.
///
/// It is planned when it is made, then given its arenas, then bound; then it computes.
class Replica {
 public:
  /// Plans model and loss for batches of `rows` rows.
  /// @param samples  of a step over all ranks, for the scale of the loss gradient
  /// @param seed     of what layers draw in a pass
  /// @param reduce_dtype  as MirroredOptions::reduce_dtype
  /// Throws as ReplicaPlan, and InputError for layers that are not for this device.
  Replica(const Layer& model, const Loss& loss, ComputeDevice device, std::shared_ptr<Primitives> primitives,
          Picker& picker, std::span<const Field> fields, std::size_t rows, std::size_t samples, std::uint64_t seed,
          std::optional<DType> reduce_dtype = {});
  /// Of a program that was planned before: a part of a model, for the processor.
  Replica(Program program, ComputeDevice device, std::shared_ptr<Primitives> primitives, std::size_t samples,
          std::uint64_t seed);
  Replica(const Replica&) = delete;  // its parameters know its memory

  [[nodiscard]] const ReplicaPlan& plan() const noexcept { return plan_; }
  [[nodiscard]] const Program& program() const noexcept { return program_; }
  /// For who gives it other inputs than a batch.
  [[nodiscard]] Program& program() noexcept { return program_; }
  [[nodiscard]] const ComputeDevice& device() const noexcept { return device_; }
  [[nodiscard]] Stream& stream() const noexcept { return *device_.stream; }

  // ---- memory
  // --------------------------------------------------------------------------------------------------------

  /// Takes the memory that is the replica's own: activations, what layers keep, `states` optimizer states, and, where
  /// layers read a half type, the float32 values that are trained. Throws ResourceError.
  /// @param elements       of which states are kept, the others are updated elsewhere; nothing: all
  /// @param keeps_average  one more arena, for an average of the values that are trained
  void take_memory(std::size_t states, const std::optional<Range>& elements, bool keeps_average);
  /// Is given the memory of an average, in the place of its own. Before `bindings`.
  void take_average(Buffer average) { average_ = std::move(average); }
  /// Is given the memory that other ranks may reach: the values that layers read, the gradients, and the lists of the
  /// touched rows of sparse tables.
  /// @param sums  of gradients over micro-batches and ranks, where those have another type than layers write
  void take_arenas(Buffer values, Buffer gradients, Buffer lists, Buffer sums = {});
  /// Is told that other ranks of the node have the same memory for their values, and is given the average of these,
  /// which they have, too; see shared_values.hpp.
  /// @param average  empty: none is kept
  /// @param part     of the elements, that this rank writes where all of the node write together
  void share_values(Buffer average, const Range& part);
  [[nodiscard]] bool shares_values() const noexcept { return part_.has_value(); }
  /// The elements that this rank writes for itself and for those that share its values: all where nobody does.
  [[nodiscard]] Range written() const noexcept { return part_.value_or(Range{0, plan_.elements()}); }
  [[nodiscard]] const Buffer& values() const noexcept { return values_; }
  [[nodiscard]] const Buffer& gradients() const noexcept { return gradients_; }
  /// What is summed over the ranks: the gradients, or where the plan widens them, their float32 copy.
  [[nodiscard]] const Buffer& reduced() const noexcept { return plan_.widens() ? sums_ : gradients_; }
  /// The values that are trained, float32.
  [[nodiscard]] const Buffer& trained() const noexcept { return plan_.mixed() ? masters_ : values_; }
  /// An average of them; empty: none is kept.
  [[nodiscard]] const Buffer& average() const noexcept { return average_; }
  /// All parameters but sparse tables, for an updater.
  [[nodiscard]] ArenaRange dense_arena() const noexcept;
  /// The elements of `kept()`, where there are no sparse tables.
  [[nodiscard]] ArenaRange kept_arena() const noexcept;
  /// The sparse tables; empty where the model has none.
  [[nodiscard]] ArenaRange sparse_arena() const noexcept;
  /// The rows that this step has touched of the table in plan().tables()[i].
  [[nodiscard]] TouchedRows& touched(std::size_t i) noexcept { return touched_[i]; }
  [[nodiscard]] LayerArenas layer_arenas() const noexcept;
  /// Follows float16 gradients, in the device's memory; null for other types.
  [[nodiscard]] LossScale* more_scale() const noexcept { return reinterpret_cast<LossScale*>(scale_.data()); }
  [[nodiscard]] float loss_scale() const noexcept { return loss_scale_; }

  /// Tells the program where its memory is.
  void bind();
  /// As an optimizer is to be bound, with a group for each parameter.
  /// @param group_of  by name; null: one group
  [[nodiscard]] OptimizerBindings bindings(const std::function<ParameterGroup(std::string_view)>& group_of) const;
  /// Arenas of the elements in `kept()`.
  [[nodiscard]] std::vector<float*> states() const;
  [[nodiscard]] Range kept() const noexcept { return kept_.value_or(Range{0, plan_.elements()}); }
  [[nodiscard]] bool keeps_all_states() const noexcept { return !kept_; }
  /// Draws the initial parameters; what layers read of them is not rounded yet.
  void initialize(Initializer usual, std::uint64_t seed);

  [[nodiscard]] std::span<const Parameter> parameters() const noexcept { return parameters_; }
  /// Shows the parameters, in float32.
  void visit_parameters(StateVisitor& visitor) const;
  /// Shows the average of each parameter, where one is kept: `conv1.weight.ema`.
  void visit_average(StateVisitor& visitor) const;
  /// Shows what layers keep from step to step.
  void visit_layer_states(StateVisitor& visitor) const;
  /// Shows the rest of what exact continuation needs of this replica: the loss scale and what layers keep.
  void visit_states(StateVisitor& visitor) const;

  // ---- computing
  // -----------------------------------------------------------------------------------------------------

  /// Of a pass over `batch`, which lies where the model computes.
  /// @param sums  where the loss adds its own, in the memory of the device
  [[nodiscard]] Pass pass(Mode mode, const Batch& batch, std::uint64_t step, StepControl* sums) const;
  [[nodiscard]] const Tensor& forward(const Batch& batch, const Pass& pass);
  /// Of the outputs; the gradient that `backward` begins with.
  const Tensor& loss(const Batch& batch, const Pass& pass) { return program_.loss(batch.target(), pass); }
  void backward(const Pass& pass) { program_.backward(pass); }
  /// Before the first backward of a step: no row is touched, and all gradients of sparse tables are zero.
  void clear_sparse_gradients();
  /// Forward, loss and backward; `pass.on_ready` is told of each gradient.
  void compute(const Batch& batch, const Pass& pass, StepClock& clock);
  /// Forward and loss. Returns the outputs.
  const Tensor& evaluate(const Batch& batch, const Pass& pass);

  /// Calls `body`, which may compute. What layers keep is as before then.
  void with_states_kept(FunctionRef<void()> body);
  /// What each operation costs here, on random samples. The gradients are others then; states are as before.
  [[nodiscard]] std::vector<OperationCosts> measure(std::span<const Field> fields);

  /// Throws InputError for a batch of other shapes, or with other rows, than the model was planned for.
  void check(const Batch& batch) const;

 private:
  ComputeDevice device_;
  std::shared_ptr<Primitives> primitives_;
  std::uint64_t seed_;
  float loss_scale_;
  Program program_;
  ReplicaPlan plan_;
  std::vector<Tensor> inputs_;  ///< of a pass
  Buffer values_, gradients_, sums_, lists_, activations_, average_;
  std::vector<TouchedRows> touched_;  ///< of the sparse tables, in `lists_`
  std::vector<Buffer> states_;        ///< the optimizer's
  std::vector<Buffer> layer_states_;
  Buffer masters_;             ///< float32, where values are of a half type; as many elements
  Buffer scale_;               ///< a LossScale, where gradients are float16
  std::optional<Range> part_;  ///< where others share the values
  std::optional<Range> kept_;  ///< elements of each of `states_`; nothing: all
  std::vector<Parameter> parameters_;
};

/// Throws InputError where a field of a batch is not what the model was planned for.
void require_planned(const TensorDesc& planned, const TensorDesc& found);
/// Samples to measure on: float32 numbers from 0 to 1, the same for the same seed and name; others stay as they are.
void draw_uniform(const Tensor& tensor, std::uint64_t seed, const std::string& stream);

/// Elements of all of them, without padding.
[[nodiscard]] std::size_t elements_of(std::span<const Parameter> parameters);
/// A hash of all in file layout.
[[nodiscard]] std::string hash_of(std::span<const Parameter> parameters, HostCopy& host);

}  // namespace ronda
