#pragma once
#include <cstdint>
#include <limits>

#include <ronda/layers/layer.hpp>

namespace ronda {

/// Padding of a convolution that makes the output as large as the input: PyTorch's padding = 'same'. If the number of
/// zeros is odd, the extra zero is below or to the right. For stride 1 only.
inline constexpr std::int64_t same_padding = std::numeric_limits<std::int64_t>::min();

struct Conv1dOptions {
  std::int64_t stride = 1;
  std::int64_t padding = 0;   ///< zeros at both ends of the sequence; or `same_padding`
  std::int64_t dilation = 1;  ///< steps between neighbouring elements of the kernel
  /// Number of groups of input and output channels: each group of outputs reads only its group of inputs. With as many
  /// groups as input channels it is a depthwise convolution.
  std::int64_t groups = 1;
  bool bias = true;
};

/// Cross-correlation of sequences (N, T, C), such as the output of embeddings: weight (outputs, C / groups, kernel) and
/// bias (outputs), as PyTorch's Conv1d, except that PyTorch's sequences are (N, C, T). Computed as a Conv2d with a
/// kernel of one row.
///
///     Conv1d(32, 5)                                                   // (N, T, C) becomes (N, T - 4, 32)
///     Conv1d(32, 5, {.padding = same_padding, .dilation = 2})         // (N, T, 32)
///     Conv1d(64, 3, {.stride = 2, .padding = 1, .groups = 32})
class Conv1d final : public Layer {
 public:
  /// Throws InputError for `same_padding` with a stride. Building throws InputError if the options do not fit the
  /// input.
  explicit Conv1d(std::int64_t outputs, std::int64_t kernel, const Conv1dOptions& options = {});
  [[nodiscard]] std::string_view kind() const noexcept override { return "conv"; }
  Value build(Value x, GraphBuilder& builder) const override;

 private:
  ConvolutionSpec spec_;
};

/// Options of PyTorch's Conv2d: each a number, or `{height, width}`.
struct Conv2dOptions {
  HeightWidth stride = 1, padding = 0;
  HeightWidth dilation = 1;  ///< pixels between neighbouring elements of the kernel
  /// Number of groups of input and output channels: each group of outputs reads only its group of inputs. With as many
  /// groups as input channels it is a depthwise convolution.
  std::int64_t groups = 1;
  bool bias = true;
};

/// Cross-correlation of (N, H, W, C): weight (outputs, C / groups, kernel's height, kernel's width) and bias (outputs),
/// as PyTorch's Conv2d.
///
///     Conv2d(32, 3)                                                     // 3x3
///     Conv2d(32, {1, 7}, {.stride = {1, 2}, .padding = {0, 3}})         // a row of seven
///     Conv2d(32, 3, {.padding = same_padding, .dilation = 2})           // as large as its input
///     Conv2d(64, 3, {.padding = 1, .groups = 32})                       // depthwise, on 32 channels
class Conv2d final : public Layer {
 public:
  explicit Conv2d(std::int64_t outputs, HeightWidth kernel, HeightWidth stride = 1, HeightWidth padding = 0,
                  bool bias = true)
      : Conv2d(outputs, kernel, Conv2dOptions{.stride = stride, .padding = padding, .bias = bias}) {}
  /// Throws InputError for `same_padding` with a stride. Building throws InputError if the options do not fit the
  /// input.
  Conv2d(std::int64_t outputs, HeightWidth kernel, const Conv2dOptions& options);
  [[nodiscard]] std::string_view kind() const noexcept override { return "conv"; }
  Value build(Value x, GraphBuilder& builder) const override;

 private:
  ConvolutionSpec spec_;
};

}  // namespace ronda
