#pragma once
#include <ronda/layers/layer.hpp>
#include <ronda/layers/same_padding.hpp>

namespace ronda {

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
