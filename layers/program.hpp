#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/layers/buffer_plan.hpp>
#include <ronda/layers/graph.hpp>
#include <ronda/layers/loss.hpp>
#include <ronda/layers/parameter_request.hpp>

namespace ronda {

namespace graph {
struct Plan;
}

/// What one call of backward does to the gradients of parameters.
struct GradientWrites {
  std::vector<ParameterId> written;   ///< where they belong, from the call's beginning on
  std::vector<ParameterId> complete;  ///< reported at its end, or before
};

struct ProgramOptions {
  Mode mode = Mode::training;   ///< `evaluation`: no memory is kept for backward, and `backward` may not be called
  bool input_gradient = false;  ///< whether backward also computes the gradients of the inputs
  bool in_halves = false;       ///< whether backward is called in two halves, where operations can do it so
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
  /// Throws InputError for what the device cannot compute.
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
  /// Its name: a user's own operation, or one that adds up over the ranks, runs on the processor alone. Empty: there is
  /// none.
  [[nodiscard]] const std::string& first_cpu_only_operation() const noexcept;
  /// How many numbers at once its operations add up over the ranks (RankSums); each count once.
  [[nodiscard]] std::vector<std::size_t> rank_sums() const;
  /// What its operations tell the ranks that have parts of them (PartExchange); each message once.
  [[nodiscard]] std::vector<PartMessages> part_messages() const;
  /// Of the calls of backward, in their order.
  [[nodiscard]] std::vector<GradientWrites> gradient_writes() const;
  /// By operation, without times.
  [[nodiscard]] std::vector<OperationCosts> costs() const;

  // ---- running ------------------------------------------------------------------------------------------------------

  /// Before anything else here.
  /// @param parameters  by ParameterId; they, the states and the memory must not move while the program lives
  /// @param memory      a block of `buffer_plan().bytes` bytes on `device`, aligned to Buffer::alignment
  void bind(std::span<Parameter> parameters, std::span<const Tensor> states, std::byte* memory, Device device = {});

  /// Returns the output, which is valid until the next forward. The inputs must stay until the pass's backward.
  const Tensor& forward(Inputs inputs, const Pass& pass);
  /// For a program with a loss. Adds the loss to `pass.control`. Returns the gradient of the outputs, which the caller
  /// may change before `backward`.
  const Tensor& loss(const Tensor& target, const Pass& pass);
  /// Writes all gradients, and calls `pass.on_ready` for each parameter when its gradient is complete.
  void backward(const Pass& pass);
  /// The same in two halves. The first ends with the gradients of the inputs, and writes those of parameters alone that
  /// have to be computed with them; the second writes all others. Without ProgramOptions::in_halves the first does all.
  void backward_inputs(const Pass& pass);
  void backward_parameters(const Pass& pass);
  /// The gradient of the output. A program without a loss: write it before `backward`.
  [[nodiscard]] const Tensor& output_gradient() const noexcept { return output_gradient_; }
  /// Where `forward` writes the output, once bound; without an address where that is an input itself.
  [[nodiscard]] const Tensor& output_place() const noexcept { return output_; }
  /// Where forward writes what is given on (Graph::passed), once bound.
  [[nodiscard]] std::vector<Tensor> passed() const;
  /// The gradients of these, which are written before `backward`.
  [[nodiscard]] std::vector<Tensor> passed_gradients() const;
  /// The costs with times. Times each call of forward and backward twice and takes the shorter. Synchronizes after each
  /// call. Overwrites gradients and states. Does not call `pass.on_ready`.
  [[nodiscard]] std::vector<OperationCosts> measure(Inputs inputs, const Pass& pass);
  /// The gradient of an input after backward, or its first half. Needs ProgramOptions::input_gradient; empty otherwise,
  /// and for integers.
  [[nodiscard]] Tensor input_gradient(std::size_t input) const;

 private:
  struct Bound;

  ProgramOptions options_;
  std::unique_ptr<graph::Plan> plan_;
  std::unique_ptr<Bound> bound_;
  Tensor output_, output_gradient_;
};

}  // namespace ronda
