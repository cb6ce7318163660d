#pragma once
#include <ronda/layers/layer.hpp>

namespace ronda {

/// (x − mean) / √(variance + epsilon) · weight + bias, with mean and variance over the last `axes` axes, separately for
/// each sample, step of a text or pixel (Ba, Kiros and Hinton, "Layer normalization", 2016); the variance is biased. As
/// PyTorch's LayerNorm, but with the number of axes in place of `normalized_shape`: `LayerNorm()` of (N, T, features)
/// has weight (features), initially 1, and bias (features), initially 0. For images (N, H, W, C) it normalises over the
/// channels of each pixel, or over all three axes; weight and bias are then (C, H, W) in files.
class LayerNorm final : public Layer {
 public:
  /// @param affine  whether there is a weight, and, if `bias`, a bias
  explicit LayerNorm(int axes = 1, float epsilon = 1e-5F, bool affine = true, bool bias = true)
      : spec_{.axes = axes, .epsilon = epsilon, .affine = affine, .bias = bias} {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "layer_norm"; }
  Value build(Value x, GraphBuilder& builder) const override;

 private:
  LayerNormSpec spec_;
};

}  // namespace ronda
