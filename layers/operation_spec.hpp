#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <ronda/core/tensor.hpp>
#include <ronda/layers/elementwise.hpp>

namespace ronda {

/// A number for each direction of an image. One number stands for both: 3 is {3, 3}.
struct HeightWidth {
  std::int64_t height, width;

  constexpr HeightWidth(std::int64_t both) noexcept : height(both), width(both) {}
  constexpr HeightWidth(std::int64_t of_height, std::int64_t of_width) noexcept : height(of_height), width(of_width) {}
  bool operator==(const HeightWidth&) const = default;

  [[nodiscard]] constexpr std::int64_t area() const noexcept { return height * width; }
  [[nodiscard]] constexpr bool is_square() const noexcept { return height == width; }
  /// `3`, or `1x7`.
  [[nodiscard]] std::string text() const {
    return std::to_string(height) + (is_square() ? "" : "x" + std::to_string(width));
  }
};

class CustomOperation;

/// The activation that an operation applies to its output.
enum class Activation : std::uint8_t { none, relu };
enum class PoolKind : std::uint8_t { maximum, average };
/// The tensor of a split operation that the ranks of its group sum, as each computes a part: see graph_split.hpp.
enum class SumOverRanks : std::uint8_t { none, output, input_gradient };
/// How the rows of a bag are combined.
enum class BagMode : std::uint8_t { sum, mean };

/// The maximum or the mean of each window of images (N, H, W, C), or of sequences (N, T, C), as images of one row.
struct PoolSpec {
  PoolKind kind = PoolKind::maximum;
  HeightWidth kernel = 2, stride = 2, padding = 0;  ///< an average leaves padding out
  bool operator==(const PoolSpec&) const = default;
};

/// y = activation(x · Wᵀ + b), x (N, inputs), W (outputs, inputs). x may be an activation (N, H, W, C) of any layout
/// without padding, read as (N, H·W·C) in the order of its bytes. In x (N, T, inputs) each step is a row.
struct DenseSpec {
  std::int64_t outputs = 0;
  bool bias = true;
  Activation activation = Activation::none;
  bool int8 = false;  ///< computes with integers: see int8.hpp
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
  HeightWidth dilation = 1;  ///< pixels between neighbouring elements of the kernel
  std::int64_t groups = 1;   ///< number of channel groups; each is convolved separately to its share of the outputs
  HeightWidth trailing = 0;  ///< zeros below and to the right, in addition to `padding`
  bool int8 = false;         ///< computes with integers: see int8.hpp
  SumOverRanks sums = SumOverRanks::none;

  /// Whether the convolution has no dilation, no groups and no trailing zeros.
  [[nodiscard]] bool is_usual() const noexcept { return dilation == 1 && groups == 1 && trailing == 0; }
};

/// A function of each element.
struct ElementwiseSpec {
  ElementwiseFunction function = ElementwiseFunction::relu;
};

/// (x − mean) / √(variance + epsilon) · weight + bias, with mean and variance over the last `axes` axes, separately for
/// each index of the other axes. For images (N, H, W, C): over the channels, or over H, W and C. Weight and bias have
/// one element for each index of the last axes.
struct LayerNormSpec {
  int axes = 1;
  float epsilon = 1e-5F;
  bool affine = true;  ///< whether there is a weight
  bool bias = true;    ///< whether there is a bias, if there is a weight
};

/// activation((x − mean) / √(variance + epsilon) · weight + bias), with mean and variance of each channel, the last
/// axis, over all others. States: the running mean and variance, one element per channel each, and the number of
/// training passes, int64.
struct BatchNormSpec {
  float momentum = 0.1F, epsilon = 1e-5F;
  bool affine = true;         ///< whether there are weight and bias
  bool synchronized = false;  ///< mean and variance are over the rows of all ranks
  bool held = false;          ///< training, too, normalises by the running values, and leaves them unchanged
  Activation activation = Activation::none;
};

/// In training 0 with probability p, otherwise x / (1 − p); in evaluation x.
struct DropoutSpec {
  double p = 0.5;
};

/// activation(the sum of two or more inputs), all of one shape and layout.
struct AddSpec {
  Activation activation = Activation::none;
};

/// Looks up int32 tokens (N, …) in a table (rows, width): (N, …, width). As a bag, (N, T) becomes (N, width). A token
/// equal to `padding` does not count in its bag and has no gradient.
struct EmbeddingSpec {
  std::int64_t rows = 0, width = 0;
  std::int64_t padding = -1;  ///< a row of the table; or -1, which reads as zeros
  std::optional<BagMode> bag = std::nullopt;
};

/// Adds the first T rows of a table (rows, width) to each sample of x (N, T, width).
struct PositionSpec {
  std::int64_t rows = 0;
};

/// softmax(Q · Kᵀ / √d) · V in each of `heads` heads. The input (N, T, 3 · width) holds query, key and value of each
/// step; head h uses elements h·d to (h+1)·d of each, d = width / heads. The output is (N, T, width). An optional
/// second input, int32 (N), holds the number of steps of each sample; later steps are padding.
struct AttentionSpec {
  std::int64_t heads = 1;
  bool causal = false;  ///< a step attends only to itself and to earlier steps
  double dropout = 0;   ///< probability that training sets a weight to 0; the others are divided by 1 − dropout
};

/// Concatenates inputs along `axis`, which is not the batch axis; all other extents are equal. Plain layout.
struct ConcatSpec {
  int axis = 0;
};

/// Reshapes (N, …) to (N, features), images in (C, H, W) order as in PyTorch.
struct FlattenSpec {};

/// Converts a tensor to another layout or type.
struct ReorderSpec {
  TensorDesc to;
};

/// Converts between features that every rank of a group holds in full and features that are split over the group, along
/// the last axis; see graph_split.hpp.
struct PartSpec {
  bool gathers = true;               ///< true: gathers all parts; false: selects this rank's part
  std::vector<std::int64_t> widths;  ///< features of each part
  std::size_t part = 0;              ///< index of this rank's part
};

/// The operation of a graph node. User-defined operations are CustomOperations.
using OperationSpec = std::variant<DenseSpec, ConvolutionSpec, PoolSpec, ElementwiseSpec, LayerNormSpec, BatchNormSpec,
                                   DropoutSpec, AddSpec, ConcatSpec, EmbeddingSpec, PositionSpec, AttentionSpec,
                                   FlattenSpec, ReorderSpec, PartSpec, std::shared_ptr<const CustomOperation>>;

/// The usual name of the operation: `dense`, `conv`, `max_pool`, …
[[nodiscard]] std::string kind_of(const OperationSpec& operation);

/// The logical shape of the output. Throws InputError for input shapes that the operation does not accept.
[[nodiscard]] Shape output_shape(const OperationSpec& operation, std::span<const Shape> inputs);

/// Floating-point operations of a forward pass; a multiplication with an addition counts as two. 0 for operations that
/// only move data, and for CustomOperations. Backward takes about twice that if the operation has parameters.
[[nodiscard]] double flops_of(const OperationSpec& operation, std::span<const Shape> inputs);

[[nodiscard]] Shape convolution_output(const ConvolutionSpec& spec, const Shape& input);  ///< before pooling
[[nodiscard]] Shape weight_shape(const ConvolutionSpec& spec, const Shape& input);
/// Kernel, stride and padding, `kernel 1x7 stride 1 padding 0x3`, then dilation, groups and trailing zeros if any.
[[nodiscard]] std::string text_of_windows(const ConvolutionSpec& spec);
[[nodiscard]] Shape pool_output(const Shape& input, const PoolSpec& spec);
/// One window over a whole image, or a whole sequence.
[[nodiscard]] PoolSpec global_average(const Shape& input);
/// The shape of weight and bias in files: the last axes of the input; (C, H, W) for whole images, as in PyTorch. Throws
/// InputError if the input has fewer axes.
[[nodiscard]] Shape normalized_shape(const LayerNormSpec& spec, const Shape& input);

}  // namespace ronda
