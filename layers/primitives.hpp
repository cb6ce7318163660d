#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/dtype.hpp>
#include <ronda/layers/operation.hpp>
#include <ronda/layers/operation_spec.hpp>

namespace ronda {

/// Arithmetic of layers. Sums are always float32.
enum class Precision : std::uint8_t {
  float32,
  tf32,  ///< factors rounded to 11 bits, by tensor cores of NVIDIA GPUs from Ampere on
  // Activations, parameters and gradients in the half type; softmax and loss in float32, and the optimizer keeps the
  // parameters in float32 (Micikevicius et al., "Mixed precision training", ICLR 2018).
  mixed_bfloat16,
  mixed_float16,  ///< needs a loss scale, as small gradients underflow to 0 and large ones overflow
};

/// Which engines of a GPU's libraries may be used.
struct EngineRules {
  Precision precision = Precision::float32;
  bool deterministic = true;  ///< only engines that sum in the same order in every run
};

/// float32, tf32, mixed_bfloat16 or mixed_float16. Throws InputError that lists the names.
[[nodiscard]] Precision parse_precision(std::string_view name);
[[nodiscard]] std::string_view name_of(Precision precision) noexcept;

/// The type in which half-precision gradients are summed over the ranks: bfloat16 or float32. Throws InputError that
/// lists the names.
[[nodiscard]] DType parse_reduce_dtype(std::string_view name);

/// The type of stored activations, parameters and gradients.
[[nodiscard]] constexpr DType dtype_of_layers(Precision precision) noexcept {
  switch (precision) {
    case Precision::mixed_bfloat16: return DType::bfloat16;
    case Precision::mixed_float16: return DType::float16;
    default: return DType::float32;
  }
}

class DeviceContext;

/// A loss, made for one description of outputs. See Loss for the results of `run`.
class LossOperation {
 public:
  virtual ~LossOperation() = default;
  [[nodiscard]] virtual std::size_t scratch_bytes() const noexcept { return 0; }
  /// Adds to `pass.control` and writes `gradient`.
  virtual void run(const Tensor& outputs, const Tensor& target, const Tensor& gradient, std::byte* scratch,
                   const Pass& pass) = 0;
};

/// Options of softmax cross entropy for backends: see SoftmaxCrossEntropy.
struct CrossEntropySpec {
  float smoothing = 0;               ///< in [0, 1)
  std::int32_t ignore_index = -100;  ///< label of rows that do not count
  std::vector<float> weights = {};   ///< weight of each class; empty: 1 each
};

/// Makes the operations of one device. Backends: `reference/` (plain loops), `onednn/`, `cudnn/`.
class Primitives {
 public:
  virtual ~Primitives() = default;
  /// Library and version. It is part of the plan.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Type of activations, parameters and their gradients. Model inputs of another type must be cast.
  [[nodiscard]] virtual DType dtype() const noexcept { return DType::float32; }
  /// Whether plain loops on the processor can replace operations that `make` does not support.
  [[nodiscard]] virtual bool on_processor() const noexcept { return true; }

  /// An operation for inputs of these descriptions; null if this device does not support it. A reorder converts between
  /// layouts, and, if `dtype` is a half type, also between that type and float32. Throws InputError if the shapes do
  /// not fit.
  virtual std::unique_ptr<Operation> make(const OperationSpec& operation, std::span<const TensorDesc> inputs,
                                          const OperationContext& context) = 0;

  /// For plain outputs (N, …, classes), in float32, or, except on the processor, in `dtype`. Plain loops if the library
  /// has no implementation; null if the device supports neither.
  virtual std::unique_ptr<LossOperation> softmax_cross_entropy(const TensorDesc& outputs, const CrossEntropySpec& spec);
};

/// Plain loops for every shape, in one thread: the reference that the other backends are tested against.
std::unique_ptr<Primitives> make_reference_primitives();
/// oneDNN on the CPU with `threads` threads.
/// @param dtype  float32 or bfloat16; bfloat16 is slow on processors without instructions for it: see bfloat16_support.
///               Throws InputError for another type.
std::unique_ptr<Primitives> make_onednn_primitives(int threads, DType dtype = DType::float32);

/// The widest vectors of float32 that the processor has and ONEDNN_MAX_CPU_ISA leaves to its primitives: `AVX-512`,
/// `AVX2`, `AVX`, or `narrow vectors`. The choice of algorithms, and so the bits of the results, depends on it.
/// Different processors may have the same name.
[[nodiscard]] std::string vector_instructions();
/// How the processor and oneDNN compute in bfloat16.
struct BFloat16Support {
  bool fast = false;     ///< the processor has instructions that oneDNN uses
  std::string text;      ///< `AMX and AVX-512 BF16, by oneDNN 3.7.2`, or the reason why it is slow
  std::string remedy{};  ///< how to make it fast, if it is not
};
[[nodiscard]] BFloat16Support bfloat16_support();
/// cuDNN and cuBLASLt on a GPU, all activations plain. Candidates are timed on `stream`, which belongs to `context`;
/// both must outlive the operations. Throws InputError in a build without CUDA, DeviceError for errors of the
/// libraries.
std::unique_ptr<Primitives> make_cudnn_primitives(DeviceContext& context, Stream& stream, const EngineRules& rules);

// ---- for backends ---------------------------------------------------------------------------------------------------

/// A dense operation with its input, whose description decides how it is computed.
struct DenseProblem : DenseSpec {
  TensorDesc input;
};
struct ConvolutionProblem : ConvolutionSpec {
  TensorDesc input;
};
[[nodiscard]] inline Shape convolution_output(const ConvolutionProblem& problem) {
  return convolution_output(problem, problem.input.shape);
}

/// The plan of an elementwise function, for any layout.
/// @param backward_reads_input  true: backward reads the input; false: the output
[[nodiscard]] OperationPlan plan_of_function(const TensorDesc& input, bool backward_reads_input, std::string picks);
/// The plan of a sum. Throws LogicError for inputs of several layouts.
[[nodiscard]] OperationPlan plan_of_sum(std::span<const TensorDesc> inputs, const AddSpec& spec, std::string picks);

/// A concatenation as matrices: input i has `rows` rows of `widths[i]` elements; each row of the output is the rows of
/// all inputs one after another, `whole` elements.
struct Columns {
  std::int64_t rows = 1, whole = 0;
  std::vector<std::int64_t> widths;
  OperationPlan plan;
};
/// Throws LogicError for inputs that are not plain.
[[nodiscard]] Columns columns_of(std::span<const TensorDesc> inputs, const ConcatSpec& spec, std::string picks);

/// A layer norm as a matrix: each of `rows` rows of `width` elements is normalised separately. Weight and bias have the
/// element order of a row.
struct NormalizedRows {
  std::int64_t rows = 1, width = 1;
  OperationPlan plan;
};
/// Throws LogicError for an input that is not plain.
[[nodiscard]] NormalizedRows rows_of(const TensorDesc& input, const LayerNormSpec& spec, std::string picks);

/// The number of steps of each sample that an attention reads: all, or the lengths in its second input. Throws
/// InputError for a length below 0 or above `steps`.
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

/// The plan of a batch norm, for any layout. With a ReLU, backward recomputes from the input which elements the ReLU
/// passed.
/// @param numbers  how many numbers a synchronised batch norm sums over the ranks at once
[[nodiscard]] OperationPlan plan_of_norm(const TensorDesc& input, const BatchNormSpec& spec, std::size_t numbers,
                                         std::string picks);
/// Moves running values towards the statistics of a batch: its `mean` and biased `variance` of `count` values. Does
/// nothing if these are not finite, so that one bad batch does not make all later evaluations NaN, or if `count` is 1.
void move_running_values(const BatchNormSpec& spec, float& running_mean, float& running_variance, double mean,
                         double variance, double count);

/// Overload set for std::visit: one function for each alternative of an OperationSpec.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace ronda
