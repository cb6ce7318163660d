#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <ronda/core/tensor.hpp>
#include <ronda/layers/height_width.hpp>

namespace ronda {

class CustomOperation;

/// What other operations do along with their own work.
enum class Activation : std::uint8_t { none, relu };
/// A row of elementwise.hpp.
enum class ElementwiseFunction : std::uint8_t { relu, gelu, silu, tanh, sigmoid };
enum class PoolKind : std::uint8_t { maximum, average };
/// What an operation adds up over the ranks of a group, each of which computes a part of it: see graph_split.hpp.
enum class SumOverRanks : std::uint8_t { none, output, input_gradient };
/// How the rows of a bag become one.
enum class BagMode : std::uint8_t { sum, mean };

/// The largest or the mean of each window of (N, H, W, C), or of sequences (N, T, C), which are images of one row.
struct PoolSpec {
  PoolKind kind = PoolKind::maximum;
  HeightWidth kernel = 2, stride = 2, padding = 0;  ///< average counts only real elements under padding
  bool operator==(const PoolSpec&) const = default;
};

/// y = activation(x · Wᵀ + b), x (N, inputs), W (outputs, inputs). x may be an activation (N, H, W, C) of any layout
/// that is read as (N, H·W·C): its bytes in their order, which must be dense (no padding). Of (N, T, inputs) each step
/// is a row.
struct DenseSpec {
  std::int64_t outputs = 0;
  bool bias = true;
  Activation activation = Activation::none;
  bool int8 = false;  ///< the product is of whole numbers: see int8.hpp
  SumOverRanks sums = SumOverRanks::none;
};

/// Cross-correlation of (N, H, W, C) with weights (outputs, C / groups, kernel's height and width), then activation,
/// then pooling. Sequences (N, T, C) are images of one row; their weights are (outputs, C / groups, kernel's width).
struct ConvolutionSpec {
  std::int64_t outputs = 0;
  HeightWidth kernel = 3, stride = 1, padding = 0;
  bool bias = true;
  Activation activation = Activation::none;
  std::optional<PoolSpec> pool = std::nullopt;
  HeightWidth dilation = 1;  ///< pixels from an element of the kernel to the next
  std::int64_t groups = 1;   ///< parts of the channels, each convolved by itself with a part of the outputs
  HeightWidth trailing = 0;  ///< zeros below and to the right, beyond those of `padding` on all sides
  bool int8 = false;         ///< the products are of whole numbers: see int8.hpp
  SumOverRanks sums = SumOverRanks::none;

  /// Whether a kernel takes neighbouring pixels and all channels, and has as many zeros on all sides.
  [[nodiscard]] bool is_usual() const noexcept { return dilation == 1 && groups == 1 && trailing == 0; }
};

/// A function of each element.
struct ElementwiseSpec {
  ElementwiseFunction function = ElementwiseFunction::relu;
};

/// (x − mean) / √(variance + epsilon) · weight + bias, with mean and variance over the last `axes` axes, for each place
/// of the others by itself. Of images (N, H, W, C) over the channels or over all three. Weight and bias have one
/// element for each place of the last axes.
struct LayerNormSpec {
  int axes = 1;
  float epsilon = 1e-5F;
  bool affine = true;  ///< whether there is a weight
  bool bias = true;    ///< beside a weight
};

/// activation((x − mean) / √(variance + epsilon) · weight + bias), with mean and variance of each channel, the last
/// axis, over all others. States: the running mean and variance, one element a channel each, and the number of passes
/// of training, int64.
struct BatchNormSpec {
  float momentum = 0.1F, epsilon = 1e-5F;
  bool affine = true;         ///< whether there are weight and bias
  bool synchronized = false;  ///< mean and variance are those of all ranks' rows together
  bool held = false;          ///< normalises by the running values in training too, and they do not change
  Activation activation = Activation::none;
};

/// 0 with probability p, otherwise x / (1 − p): in training. In evaluation x.
struct DropoutSpec {
  double p = 0.5;
};

/// activation(the sum of two or more inputs), all of one shape and layout.
struct AddSpec {
  Activation activation = Activation::none;
};

/// The rows of a table (rows, width) that tokens, int32 (N, …), name: (N, …, width). As a bag, (N, T) becomes
/// (N, width). A token equal to `padding` counts in no bag and has no gradient.
struct EmbeddingSpec {
  std::int64_t rows = 0, width = 0;
  std::int64_t padding = -1;  ///< a row, or -1, which is a row of zeros that the table does not have
  std::optional<BagMode> bag = std::nullopt;
};

/// Of x (N, T, width) and a table (rows, width): x + the table's first T rows, in each sample.
struct PositionSpec {
  std::int64_t rows = 0;
};

/// softmax(Q · Kᵀ / √d) · V in each of `heads` heads. The input (N, T, 3 · width) has a step's query, key and value, of
/// which head h takes the elements from h·d on, d = width / heads. The output is (N, T, width). A second input, int32
/// (N), has how many steps of a sample are read; the others are padding.
struct AttentionSpec {
  std::int64_t heads = 1;
  bool causal = false;  ///< a step reads itself and the steps before it alone, whatever lies behind
  double dropout = 0;   ///< in training: with this probability a weight is 0, and otherwise divided by 1 − dropout
};

/// Inputs one after another along `axis`, which is not the batch's; all other extents are equal. Plain layout.
struct ConcatSpec {
  int axis = 0;
};

/// (N, …) as (N, features), in (C, H, W) order, as PyTorch's.
struct FlattenSpec {};

/// The same numbers in another layout, or in another type.
struct ReorderSpec {
  TensorDesc to;
};

/// Between features that every rank of a group has whole and those that each has a part of, along the last axis; see
/// graph_split.hpp.
struct PartSpec {
  bool gathers = true;               ///< the parts become the whole; else this rank's part is taken of it
  std::vector<std::int64_t> widths;  ///< of the parts
  std::size_t part = 0;              ///< this rank's
};

/// What a node of a graph computes. A user's own is a CustomOperation.
using OperationSpec = std::variant<DenseSpec, ConvolutionSpec, PoolSpec, ElementwiseSpec, LayerNormSpec, BatchNormSpec,
                                   DropoutSpec, AddSpec, ConcatSpec, EmbeddingSpec, PositionSpec, AttentionSpec,
                                   FlattenSpec, ReorderSpec, PartSpec, std::shared_ptr<const CustomOperation>>;

/// The field's word for it: `dense`, `conv`, `max_pool`, …
[[nodiscard]] std::string kind_of(const OperationSpec& operation);

/// The logical shape of what it gives. Throws InputError for inputs that it does not take.
[[nodiscard]] Shape output_shape(const OperationSpec& operation, std::span<const Shape> inputs);

/// Floating-point operations of a forward pass, a multiplication and an addition counted as two; 0 for what only moves
/// numbers, and for a user's own. Backward takes about twice that where the operation has parameters.
[[nodiscard]] double flops_of(const OperationSpec& operation, std::span<const Shape> inputs);

[[nodiscard]] Shape convolution_output(const ConvolutionSpec& spec, const Shape& input);  ///< before pooling
[[nodiscard]] Shape weight_shape(const ConvolutionSpec& spec, const Shape& input);
/// Where its windows lie: `kernel 1x7 stride 1 padding 0x3`, and what else is not as usual.
[[nodiscard]] std::string text_of_windows(const ConvolutionSpec& spec);
[[nodiscard]] Shape pool_output(const Shape& input, const PoolSpec& spec);
/// One window over a whole image, or a whole sequence.
[[nodiscard]] PoolSpec global_average(const Shape& input);
/// Of weight and bias, as in files: the last axes, those of whole images as (C, H, W), which is PyTorch's order. Throws
/// InputError for an input that has not so many.
[[nodiscard]] Shape normalized_shape(const LayerNormSpec& spec, const Shape& input);

}  // namespace ronda
