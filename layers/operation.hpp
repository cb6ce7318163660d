#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/state.hpp>
#include <ronda/layers/pass.hpp>

namespace ronda {

/// One implementation of an operation. `run` executes it once on its own memory, for timing. `run` is empty if this
/// processor or library does not support it; the candidate stays in the list, which must be the same on all ranks.
struct Candidate {
  std::string name;
  std::function<void()> run;
  double counts = 1;  ///< factor on its measured time: above 1 if it also slows down other work
};

/// A candidate's `run` that allocates lazily: calls `make` for a pointer to its memory at the first run, then
/// `run(*memory)`. Usually the answer is known, and no candidate runs.
template <class Make, class Run>
std::function<void()> rehearsal(Make make, Run run) {
  return [make, run, memory = decltype(make())()]() mutable {
    if (!memory) memory = make();
    run(*memory);
  };
}

/// Chooses between candidates. A strategy's picker looks in the plan or the cache first. Otherwise it times the
/// candidates on all ranks at once, and all ranks use the one with the least time × counts on rank 0.
class Picker {
 public:
  virtual ~Picker() = default;
  /// The index of the candidate to use, whose `run` is not empty. Collective over the ranks that plan together, which
  /// must ask the same questions in the same order. Throws Error when no candidate can run.
  /// @param question  text with operation, shape and direction; equal questions get equal answers
  virtual std::size_t pick(std::string_view question, std::span<const Candidate> candidates) = 0;
  /// The name of the candidate that `pick` will return, if it was decided before, the same on all ranks; empty
  /// otherwise. If known, the caller need not prepare the other candidates.
  [[nodiscard]] virtual std::string known(std::string_view /*question*/) const { return {}; }
};

/// Takes the first candidate that can run; for tests and for programs without ranks.
class FirstPicker final : public Picker {
 public:
  std::size_t pick(std::string_view question, std::span<const Candidate> candidates) override {
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (candidates[i].run) return i;
    throw Error("nothing on this machine can do " + std::string(question));
  }
};

/// Which gradients an operation's backward writes for its inputs.
enum class InputGradients : std::uint8_t {
  each,    ///< a gradient for each input that needs one
  common,  ///< one gradient, shared by all inputs
  output,  ///< none: the output's gradient is the gradient of every input, and backward is not called
};

/// The memory, layouts and behaviour that an operation was planned with.
struct OperationPlan {
  TensorDesc output;
  std::vector<TensorDesc> parameters = {};  ///< weight, then bias, in the layouts it reads; the gradients' too
  std::size_t pass_bytes = 0;               ///< kept from forward to backward, besides input and output
  std::size_t between_bytes = 0;            ///< kept from the first half of backward to the second
  std::size_t scratch_bytes = 0;            ///< used within one call
  std::size_t rank_sums = 0;                ///< length of its sum over the ranks in a pass; 0: none
  PartMessages parts = {};                  ///< messages between the ranks that share it, in a pass
  std::string picks = {};                   ///< the algorithms chosen, for --verbose and the plan
  bool backward_reads_inputs = true, backward_reads_output = true;
  bool in_place = false;                   ///< forward may overwrite its first input with its output
  bool in_halves = false;                  ///< backward has two halves: see Operation
  bool second_half_reads_gradient = true;  ///< reads the output's gradient; else `between` holds what it needs
  InputGradients gradients = InputGradients::each;
};

/// The memory that an operation works on. Pointers are valid as long as the operation. If the plan says that backward
/// does not read inputs or output, other tensors use that memory by then.
struct OperationMemory {
  Tensor output;
  std::vector<Tensor> input_gradients = {};  ///< one per input; empty if no operation reads it
  std::vector<Parameter*> parameters = {};   ///< weight, bias
  std::vector<Tensor> states = {};           ///< states kept from step to step, in plain layout
  std::byte* pass = nullptr;
  std::byte* between = nullptr;
  std::byte* scratch = nullptr;

  /// The gradient of the first input.
  [[nodiscard]] const Tensor& input_gradient() const noexcept { return input_gradients.front(); }
};

/// The inputs of an operation, in the order of its graph node.
using Inputs = std::span<const Tensor>;

/// A planned computation by one device's library: made once, run in every step, without allocations in our code.
class Operation {
 public:
  virtual ~Operation() = default;
  [[nodiscard]] const OperationPlan& plan() const noexcept { return plan_; }
  virtual void bind(const OperationMemory& memory) = 0;
  /// `inputs` have the descriptions that the operation was made for. Their addresses may differ between calls.
  virtual void forward(Inputs inputs, const Pass& pass) = 0;
  /// Writes (never adds to) gradients: first of the parameters, each reported by `pass.on_ready`, then of the inputs.
  virtual void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) = 0;

  // Backward in two halves, if OperationPlan::in_halves. Both calls get the same tensors. The second half must not
  // access the output or the inputs' gradients: other tensors may use their memory by then. The same holds for the
  // output's gradient, unless OperationPlan::second_half_reads_gradient.

  /// Writes the gradients of the inputs, and those parameter gradients that are computed with them.
  virtual void backward_inputs(Inputs inputs, const Tensor& output_gradient, const Pass& pass) {
    backward(inputs, output_gradient, pass);
  }
  /// Writes the other parameter gradients.
  virtual void backward_parameters(Inputs /*inputs*/, const Tensor& /*output_gradient*/, const Pass& /*pass*/) {}

 protected:
  OperationPlan plan_;
};

/// The circumstances that an operation is made for.
struct OperationContext {
  Picker& picker;
  Mode mode = Mode::training;
  bool input_gradient = true;      ///< whether the gradient of any input is needed
  bool shared_parameters = false;  ///< other operations read its parameters: all use one layout
  std::string_view name = {};      ///< its name in the model, `dropout1`; seeds its random numbers
  bool in_halves = false;          ///< split backward into halves, if the operation supports it
};

}  // namespace ronda
