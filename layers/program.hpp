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

struct ProgramOptions {
  Mode mode = Mode::training;   ///< in `evaluation` nothing is kept for backward, and there is none
  bool input_gradient = false;  ///< whether backward is to give the gradients of the inputs too
};

/// What one operation of a program costs.
struct OperationCosts {
  std::string name, picks;
  Shape output;
  std::size_t parameters = 0;  ///< elements
  double flops = 0;            ///< of a forward pass
  /// From forward to backward, the output included where a backward reads it. Memory that later operations took over in
  /// place counts once, at the first.
  std::size_t kept_bytes = 0;
  double forward = 0, backward = 0;  ///< seconds of one call; 0: not measured
};

/// A graph, planned for one device: its operations in their order, and what memory each value has and when. It is made
/// once, bound to memory, and then runs forward, the loss and backward many times, without taking any. One program is
/// one set of activations; several of one graph may share parameters.
///
/// Not thread-safe.
class Program {
 public:
  /// Plans; takes no memory. The same on all ranks that ask the same picker. Throws InputError for what the device
  /// cannot compute.
  /// @param loss  null: none
  Program(Graph graph, const Loss* loss, Primitives& primitives, Picker& picker, const ProgramOptions& options = {});
  ~Program();
  Program(Program&&) noexcept;

  // ---- what it needs ------------------------------------------------------------------------------------------------

  /// The fields of a batch, in the order in which `forward` takes them.
  [[nodiscard]] std::span<const GraphInput> inputs() const noexcept;
  [[nodiscard]] const TensorDesc& input_desc(std::size_t input) const;
  [[nodiscard]] std::span<const ParameterRequest> parameters() const noexcept;
  [[nodiscard]] std::span<const GraphState> states() const noexcept;
  [[nodiscard]] std::span<const BufferRequest> buffers() const noexcept;
  [[nodiscard]] const BufferPlan& memory() const noexcept;
  [[nodiscard]] const TensorDesc& output() const noexcept;
  /// What was chosen, a line an operation.
  [[nodiscard]] std::span<const std::string> lines() const noexcept;
  /// An operation of a user's own, which needs the processor; empty: there is none.
  [[nodiscard]] const std::string& processor_alone() const noexcept;
  [[nodiscard]] std::vector<OperationCosts> costs() const;

  // ---- running ------------------------------------------------------------------------------------------------------

  /// @param parameters  by ParameterId; they, the states and the memory stay where they are as long as the program
  /// @param memory      `memory().bytes`
  void bind(std::span<Parameter> parameters, std::span<const Tensor> states, std::byte* memory, Device device = {});

  /// The output is valid until the next forward; the inputs must stay until the pass's backward.
  const Tensor& forward(Inputs inputs, const Pass& pass);
  /// The loss of the outputs: its sums, and its gradient, which `backward` begins with and which may be changed before.
  const Tensor& loss(const Tensor& target, const Pass& pass);
  /// Writes all gradients; tells `pass.on_ready` of each parameter's as soon as it is complete.
  void backward(const Pass& pass);
  /// What backward begins with, for one that has no loss.
  [[nodiscard]] const Tensor& output_gradient() const noexcept { return output_gradient_; }
  /// The costs with the times of this device: the shorter of two runs of each call, forward and backward. The device is
  /// waited for after each. Writes gradients and states as a step does; tells nobody.
  [[nodiscard]] std::vector<OperationCosts> measure(Inputs inputs, const Pass& pass);
  /// After backward: of an input, where the options ask for it.
  [[nodiscard]] Tensor input_gradient(std::size_t input) const;

 private:
  struct Bound;

  ProgramOptions options_;
  std::unique_ptr<graph::Plan> plan_;
  std::unique_ptr<Bound> bound_;
  Tensor output_, output_gradient_;
};

}  // namespace ronda
