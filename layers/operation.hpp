#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/parameter.hpp>
#include <ronda/layers/part_exchange.hpp>
#include <ronda/layers/pass.hpp>
#include <ronda/layers/picker.hpp>

namespace ronda {

/// Which gradients an operation's backward writes for its inputs.
enum class InputGradients : std::uint8_t {
  each,    ///< one for each input that needs one
  common,  ///< one, which is every input's
  output,  ///< none: the output's gradient is every input's, and backward is not called
};

/// What an operation turned out to need, once made.
struct OperationPlan {
  TensorDesc output;
  std::vector<TensorDesc> parameters = {};  ///< weight, then bias, in the layouts it wants; gradients have the same
  std::size_t pass_bytes = 0;               ///< kept from forward to backward, beside input and output
  std::size_t between_bytes = 0;            ///< kept from the one half of backward to the other
  std::size_t scratch_bytes = 0;            ///< within one call
  std::size_t rank_sums = 0;                ///< how many numbers at once it adds up over the ranks in a pass; 0: none
  PartMessages parts = {};                  ///< what the ranks that have parts of it tell each other in a pass
  std::string picks = {};                   ///< what was chosen, for --verbose and the plan
  bool backward_reads_inputs = true, backward_reads_output = true;
  bool in_place = false;                   ///< forward may write its output where its first input lies
  bool in_halves = false;                  ///< backward is done in halves: see Operation
  bool second_half_reads_gradient = true;  ///< the output's; false: what it needs of it is kept between the halves
  InputGradients gradients = InputGradients::each;
};

/// The memory an operation works on. Pointers stay valid as long as the operation. Where the plan says that backward
/// does not read inputs or output, these are other tensors' by then.
struct OperationMemory {
  Tensor output;
  std::vector<Tensor> input_gradients = {};  ///< one an input; empty where nobody needs it
  std::vector<Parameter*> parameters = {};   ///< weight, bias
  std::vector<Tensor> states = {};           ///< what it keeps from step to step, plain
  std::byte* pass = nullptr;
  std::byte* between = nullptr;
  std::byte* scratch = nullptr;

  /// The first input's.
  [[nodiscard]] const Tensor& input_gradient() const noexcept { return input_gradients.front(); }
};

/// What an operation is given, in its order.
using Inputs = std::span<const Tensor>;

/// A planned computation of one device's library: made once, run in every step, free of allocation of ours.
class Operation {
 public:
  virtual ~Operation() = default;
  [[nodiscard]] const OperationPlan& plan() const noexcept { return plan_; }
  virtual void bind(const OperationMemory& memory) = 0;
  /// `inputs` have the descriptions the operation was made for; only their addresses may differ between calls.
  virtual void forward(Inputs inputs, const Pass& pass) = 0;
  /// Writes (never adds to) gradients: parameters' first, each reported by `pass.on_ready`, then the inputs'.
  virtual void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) = 0;

  // The same in two halves, where the plan says so. Both are given the same tensors. The second does not read the
  // output, nor touch the inputs' gradients: their memory is other tensors' by then, and so is the output's gradient's
  // where the plan says that it is not read.

  /// Writes the inputs' gradients, and those of parameters that fall to it.
  virtual void backward_inputs(Inputs inputs, const Tensor& output_gradient, const Pass& pass) {
    backward(inputs, output_gradient, pass);
  }
  /// Writes the gradients of the other parameters.
  virtual void backward_parameters(Inputs /*inputs*/, const Tensor& /*output_gradient*/, const Pass& /*pass*/) {}

 protected:
  OperationPlan plan_;
};

/// What an operation is made for, beside its own description.
struct OperationContext {
  Picker& picker;
  Mode mode = Mode::training;
  bool input_gradient = true;      ///< whether some input's gradient is needed
  bool shared_parameters = false;  ///< others read its parameters too: they lie in the one layout that all read
  std::string_view name = {};      ///< in its model, `dropout1`: tells its random numbers from others'
  bool in_halves = false;          ///< whether backward is to be done in halves, where an operation can
};

}  // namespace ronda
