#pragma once
#include <ronda/layers/layer.hpp>
#include <ronda/layers/same_padding.hpp>

namespace ronda {

/// PyTorch's: a number, or `{height, width}`.
struct Conv2dOptions {
  HeightWidth stride = 1, padding = 0;
  HeightWidth dilation = 1;  ///< pixels from an element of the kernel to the next
  /// The channels of input and output in so many parts: each part of the outputs sees its part of the input alone. As
  /// many as the input has channels is a depthwise convolution.
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
  /// Throws InputError for `same_padding` with a stride. What does not fit the input is told when the model is built.
  Conv2d(std::int64_t outputs, HeightWidth kernel, const Conv2dOptions& options);
  [[nodiscard]] std::string_view kind() const noexcept override { return "conv"; }
  Value build(Value x, GraphBuilder& builder) const override;

 private:
  ConvolutionSpec spec_;
};

}  // namespace ronda
