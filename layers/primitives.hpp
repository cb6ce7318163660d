#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/layers/operation.hpp>
#include <ronda/layers/operation_spec.hpp>
#include <ronda/layers/precision.hpp>

namespace ronda {

class DeviceContext;

/// A loss on one kind of outputs: see Loss for what it adds and writes.
class LossOperation {
 public:
  virtual ~LossOperation() = default;
  [[nodiscard]] virtual std::size_t scratch_bytes() const noexcept { return 0; }
  /// Adds to `pass.control` and writes `gradient`.
  virtual void run(const Tensor& outputs, const Tensor& target, const Tensor& gradient, std::byte* scratch,
                   const Pass& pass) = 0;
};

/// Softmax cross entropy as backends compute it: see SoftmaxCrossEntropy.
struct CrossEntropySpec {
  float smoothing = 0;               ///< in [0, 1)
  std::int32_t ignore_index = -100;  ///< the label of rows that count nothing
  std::vector<float> weights = {};   ///< of the classes; empty: 1 each
};

/// Makes the operations of one device. Backends: `reference/` (plain loops), `onednn/`, `cudnn/`.
class Primitives {
 public:
  virtual ~Primitives() = default;
  /// Library and version: part of the plan.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Of activations, parameters and their gradients; what else a model is given has to be cast.
  [[nodiscard]] virtual DType dtype() const noexcept { return DType::float32; }
  /// Whether plain loops of the processor can take the place of an operation that it does not have.
  [[nodiscard]] virtual bool on_processor() const noexcept { return true; }

  /// An operation for inputs of these descriptions; null where this device has none. Reorders are between layouts, and
  /// where `dtype` is a half type also between that and float32. Throws InputError where the shapes do not fit.
  virtual std::unique_ptr<Operation> make(const OperationSpec& operation, std::span<const TensorDesc> inputs,
                                          const OperationContext& context) = 0;

  /// Of plain outputs (N, …, classes), in float32 or, elsewhere than on the processor, in `dtype`. Null where the
  /// device cannot; plain loops where it has nothing of its own.
  virtual std::unique_ptr<LossOperation> softmax_cross_entropy(const TensorDesc& outputs, const CrossEntropySpec& spec);
};

/// Plain loops, one thread, every shape; what the others are tested against.
std::unique_ptr<Primitives> make_reference_primitives();
/// oneDNN on the CPU with that many threads.
/// @param dtype  float32 or bfloat16; right everywhere, but slow where bfloat16_support says so. Throws InputError for
///               another type.
std::unique_ptr<Primitives> make_onednn_primitives(int threads, DType dtype = DType::float32);

/// The widest vectors of float32 that the processor has and ONEDNN_MAX_CPU_ISA leaves to its primitives: `AVX-512`,
/// `AVX2`, `AVX`, or `narrow vectors`. What is picked, and so a training's bits, depends on it; processors of several
/// kinds have one name.
[[nodiscard]] std::string vector_instructions();
/// How this processor and its library compute in bfloat16.
struct BFloat16Support {
  bool fast = false;     ///< by instructions for it
  std::string text;      ///< `AMX and AVX-512 BF16, by oneDNN 3.7.2`, or what is missing
  std::string remedy{};  ///< where it is not fast
};
[[nodiscard]] BFloat16Support bfloat16_support();
/// cuDNN and cuBLASLt on a GPU, all activations plain. Candidates are timed on `stream`, of `context`; both outlive the
/// operations. Throws InputError in a build without CUDA, DeviceError for what the libraries report.
std::unique_ptr<Primitives> make_cudnn_primitives(DeviceContext& context, Stream& stream, const EngineRules& rules);

// ---- for backends ---------------------------------------------------------------------------------------------------

/// An operation of one input, whose description decides how it is computed.
struct DenseProblem : DenseSpec {
  TensorDesc input;
};
struct ConvolutionProblem : ConvolutionSpec {
  TensorDesc input;
};
[[nodiscard]] inline Shape convolution_output(const ConvolutionProblem& problem) {
  return convolution_output(problem, problem.input.shape);
}

/// The plan of a function of each element, whatever its layout.
/// @param backward_reads_input  rather than the output
[[nodiscard]] OperationPlan plan_of_function(const TensorDesc& input, bool backward_reads_input, std::string picks);
/// The plan of a sum. Throws LogicError for inputs of several layouts.
[[nodiscard]] OperationPlan plan_of_sum(std::span<const TensorDesc> inputs, const AddSpec& spec, std::string picks);

/// A concatenation as matrices: an input is `rows` rows of `widths[i]` elements, and the output's rows hold one of
/// each.
struct Columns {
  std::int64_t rows = 1, whole = 0;
  std::vector<std::int64_t> widths;
  OperationPlan plan;
};
/// Throws LogicError for inputs that are not plain.
[[nodiscard]] Columns columns_of(std::span<const TensorDesc> inputs, const ConcatSpec& spec, std::string picks);

/// A layer norm as a matrix: each of `rows` rows of `width` elements is normalised by itself. Weight and bias have the
/// order of a row.
struct NormalizedRows {
  std::int64_t rows = 1, width = 1;
  OperationPlan plan;
};
/// Throws LogicError for an input that is not plain.
[[nodiscard]] NormalizedRows rows_of(const TensorDesc& input, const LayerNormSpec& spec, std::string picks);

/// How many steps of each sample an attention reads: all, or those that its second input says. Throws InputError for a
/// length below 0 or above `steps`.
class AttentionLengths {
 public:
  AttentionLengths(Inputs inputs, std::int64_t steps);
  [[nodiscard]] std::int64_t of(std::int64_t sample) const noexcept {
    return lengths_ == nullptr ? steps_ : lengths_[sample];
  }

 private:
  const std::int32_t* lengths_ = nullptr;
  std::int64_t steps_;
};

/// The plan of a batch norm, whatever its layout. Backward computes what a ReLU let through anew, from the input.
/// @param numbers  that a synchronised one adds up over the ranks at once
[[nodiscard]] OperationPlan plan_of_norm(const TensorDesc& input, const BatchNormSpec& spec, std::size_t numbers,
                                         std::string picks);
/// Moves running values towards a batch's: `mean` and `variance`, the biased one, of `count` values. Not where those
/// are not finite, so that one spoiled batch does not spoil all evaluations to come, nor where there is a single value.
void move_running_values(const BatchNormSpec& spec, float& running_mean, float& running_variance, double mean,
                         double variance, double count);

/// Calls one function for each alternative of an OperationSpec.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace ronda
