#pragma once
#include <ronda/layers/layer.hpp>

namespace ronda {

/// Cross-correlation of (N, H, W, C) with square kernels; weight (outputs, C, kernel, kernel) and bias (outputs), as
/// PyTorch's Conv2d.
class Conv2d final : public Layer {
 public:
  explicit Conv2d(std::int64_t outputs, std::int64_t kernel, std::int64_t stride = 1, std::int64_t padding = 0,
                  bool bias = true)
      : spec_{.outputs = outputs, .kernel = kernel, .stride = stride, .padding = padding, .bias = bias} {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "conv"; }
  Value build(Value x, GraphBuilder& builder) const override;

 private:
  ConvolutionSpec spec_;
};

}  // namespace ronda
