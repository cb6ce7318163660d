#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/state.hpp>
#include <ronda/core/tensor.hpp>
#include <ronda/layers/graph.hpp>
#include <ronda/layers/initializer.hpp>
#include <ronda/layers/loss.hpp>

namespace ronda {

/// An interval of calls of a program, numbered through forward, the loss and backward. Both ends are included.
struct Interval {
  std::uint32_t from = 0, to = 0;
  [[nodiscard]] bool overlaps(const Interval& other) const noexcept { return from <= other.to && other.from <= to; }
};

/// Memory that must keep its content in these intervals. At other times another buffer may use it.
struct BufferRequest {
  std::string owner;  ///< its purpose: `conv1 output`
  std::size_t bytes = 0;
  std::vector<Interval> used = {};
  bool scratch = false;  ///< used within one call only

  [[nodiscard]] bool overlaps(const BufferRequest& other) const noexcept;
};

/// Where buffers lie in one block of memory.
struct BufferPlan {
  std::vector<std::size_t> offsets;  ///< one per request
  std::size_t bytes = 0;
  std::size_t scratch_bytes = 0;  ///< part of `bytes` that only scratch buffers need
};

/// Places buffers so that those never in use at the same time can share memory. Each takes the lowest free offset;
/// several orders are tried, one of them largest first ("greedy by size" of Pisarchyk and Lee, "Efficient memory
/// management for deep neural net inference", MLSys 2020 workshop); the plan with the fewest bytes is returned.
[[nodiscard]] BufferPlan place_buffers(std::span<const BufferRequest> requests);

/// A parameter that the operations of a program need, in the layout that they read.
struct ParameterRequest {
  std::string name;                                    ///< `dense1.weight`
  TensorDesc desc;                                     ///< logical shape as in files, layout as the primitive prefers
  std::int64_t fan_in = 0, fan_out = 0;                ///< 0 for a bias
  std::optional<TensorDesc> flattened = std::nullopt;  ///< see Parameter
  std::optional<Initializer> initializer = std::nullopt;  ///< nullopt: the model's initializer
  std::optional<std::int64_t> zero_row = std::nullopt;    ///< row of a table that starts at zero
  bool sparse = false;                                    ///< allocate Parameter::touched
};

namespace graph {
struct Plan;
}

/// The parameter gradients that one call of the backward pass writes.
struct GradientWrites {
  std::vector<ParameterId> written;   ///< written from the start of this call on
  std::vector<ParameterId> complete;  ///< complete, and reported, by the end of this call
};

struct ProgramOptions {
  Mode mode = Mode::training;   ///< `evaluation`: no memory is kept for backward, and `backward` may not be called
  bool input_gradient = false;  ///< whether backward also computes the gradients of the inputs
  bool in_halves = false;       ///< whether backward runs in two halves, for operations that support it
};

/// The costs of one operation of a program.
struct OperationCosts {
  std::string name, picks;
  Shape output;
  std::size_t parameters = 0;  ///< elements
  double flops = 0;            ///< of a forward pass
  /// Bytes held from forward to backward, with the output if backward reads it. Memory shared by in-place operations
  /// counts for the first.
  std::size_t kept_bytes = 0;
  double forward = 0, backward = 0;  ///< seconds of one call; 0: not measured
};

/// A graph, planned for one device: its operations in their order, where each value is stored, and between which calls.
/// It is made once, bound to memory, and then runs forward, the loss and backward many times without allocating. Each
/// program has its own activations. Programs of one graph may share parameters.
///
/// Not thread-safe.
class Program {
 public:
  /// Plans; allocates no memory of the device. All ranks get the same plan if their pickers give the same answers.
  /// Throws InputError for operations that the device does not support.
  /// @param loss  null: the program has no loss
  Program(Graph graph, const Loss* loss, Primitives& primitives, Picker& picker, const ProgramOptions& options = {});
  ~Program();
  Program(Program&&) noexcept;

  // ---- what it needs ------------------------------------------------------------------------------------------------

  /// The fields of a batch, in the order in which `forward` takes them.
  [[nodiscard]] std::span<const GraphInput> inputs() const noexcept;
  [[nodiscard]] const TensorDesc& input_desc(std::size_t input) const;
  [[nodiscard]] std::span<const ParameterRequest> parameters() const noexcept;
  [[nodiscard]] std::span<const GraphState> states() const noexcept;
  [[nodiscard]] std::span<const BufferRequest> buffer_requests() const noexcept;
  [[nodiscard]] const BufferPlan& buffer_plan() const noexcept;
  [[nodiscard]] const TensorDesc& output() const noexcept;
  /// The choices of the plan, one line per operation.
  [[nodiscard]] std::span<const std::string> lines() const noexcept;
  /// The name of the first operation that runs only on the processor: user-defined, or with a sum over the ranks. Empty
  /// if all operations run on any device.
  [[nodiscard]] const std::string& first_cpu_only_operation() const noexcept;
  /// The lengths of the sums over the ranks that its operations compute (RankSums), without duplicates.
  [[nodiscard]] std::vector<std::size_t> rank_sums() const;
  /// The messages between ranks that share an operation (PartExchange), without duplicates.
  [[nodiscard]] std::vector<PartMessages> part_messages() const;
  /// One element for each call of the backward pass, in order.
  [[nodiscard]] std::vector<GradientWrites> gradient_writes() const;
  /// The costs of all operations, without times.
  [[nodiscard]] std::vector<OperationCosts> costs() const;

  // ---- running ------------------------------------------------------------------------------------------------------

  /// Call before all other functions in this section.
  /// @param parameters  by ParameterId; these, states and memory must not move during the lifetime of the program
  /// @param memory      a block of `buffer_plan().bytes` bytes on `device`, aligned to Buffer::alignment
  void bind(std::span<Parameter> parameters, std::span<const Tensor> states, std::byte* memory, Device device = {});

  /// Returns the output, which is valid until the next forward. The inputs must stay valid until the pass's backward.
  const Tensor& forward(Inputs inputs, const Pass& pass);
  /// For a program with a loss. Adds the loss to `pass.control`. Returns the gradient of the outputs, which the caller
  /// may change before `backward`.
  const Tensor& loss(const Tensor& target, const Pass& pass);
  /// Writes all gradients, and calls `pass.on_ready` for each parameter when its gradient is complete.
  void backward(const Pass& pass);
  /// The same in two halves. The first computes the gradients of the inputs, and of the parameters that must be
  /// computed with them; the second computes all others. Without ProgramOptions::in_halves the first computes all.
  void backward_inputs(const Pass& pass);
  void backward_parameters(const Pass& pass);
  /// The gradient of the output. In a program without a loss the caller writes it before `backward`.
  [[nodiscard]] const Tensor& output_gradient() const noexcept { return output_gradient_; }
  /// The buffer of the output. Valid after `bind`; without an address if the output is itself an input.
  [[nodiscard]] const Tensor& output_place() const noexcept { return output_; }
  /// The buffers of the values for the next part (Graph::passed). Valid after `bind`.
  [[nodiscard]] std::vector<Tensor> passed() const;
  /// The gradients of `passed()`. The caller writes them before `backward`.
  [[nodiscard]] std::vector<Tensor> passed_gradients() const;
  /// The costs with times. Times each call of forward and backward twice and takes the shorter. Synchronizes after each
  /// call. Overwrites gradients and states. Does not call `pass.on_ready`.
  [[nodiscard]] std::vector<OperationCosts> measure(Inputs inputs, const Pass& pass);
  /// The gradient of an input, valid after `backward` or `backward_inputs`. Empty for integers, and without
  /// ProgramOptions::input_gradient.
  [[nodiscard]] Tensor input_gradient(std::size_t input) const;

 private:
  struct Bound;

  ProgramOptions options_;
  std::unique_ptr<graph::Plan> plan_;
  std::unique_ptr<Bound> bound_;
  Tensor output_, output_gradient_;
};

/// A program that owns all its memory, on the host and without a strategy.
class HostProgram {
 public:
  /// Parameters are zero. Throws as Program does, and ResourceError.
  HostProgram(Graph graph, Primitives& primitives, Picker& picker, const ProgramOptions& options = {});
  HostProgram(const HostProgram&) = delete;  // the program knows its memory

  [[nodiscard]] Program& program() noexcept { return program_; }
  [[nodiscard]] const Program& program() const noexcept { return program_; }
  /// By ParameterId; with gradients in training mode.
  [[nodiscard]] std::span<const Parameter> parameters() const noexcept { return parameters_; }
  /// By StateId.
  [[nodiscard]] std::span<const Tensor> states() const noexcept { return states_; }
  /// Sets all states to their initial values, as the constructor does.
  void reset_states();

 private:
  Tensor tensor(const TensorDesc& desc);

  Program program_;
  std::deque<Buffer> memory_;
  std::vector<Parameter> parameters_;
  std::vector<Tensor> states_;
};

/// The tensor description of a state.
[[nodiscard]] inline TensorDesc desc_of(const GraphState& state) { return {state.shape, state.dtype, {}}; }
/// Sets a state on the host to its initial value; integers to 0.
void set_initial(const GraphState& state, const Tensor& tensor);

}  // namespace ronda
