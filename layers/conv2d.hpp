#pragma once
#include <optional>

#include <ronda/layers/operation_layer.hpp>

namespace ronda {

/// Cross-correlation of (N, H, W, C) with square kernels; weight (outputs, C, kernel, kernel) and bias (outputs), as
/// PyTorch's Conv2d.
class Conv2d final : public OperationLayer {
 public:
  explicit Conv2d(std::int64_t outputs, std::int64_t kernel, std::int64_t stride = 1, std::int64_t padding = 0,
                  bool bias = true)
      : outputs_(outputs), kernel_(kernel), stride_(stride), padding_(padding), bias_(bias) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "conv"; }
  bool absorb(const Layer& next) override;  ///< a ReLU, and then a pooling

 protected:
  std::unique_ptr<Operation> make(const TensorDesc& input, Primitives& primitives,
                                  const OperationContext& context) override;
  [[nodiscard]] Fans fans(const TensorDesc& input) const override {
    return {input.shape[3] * kernel_ * kernel_, outputs_ * kernel_ * kernel_};
  }

 private:
  std::int64_t outputs_, kernel_, stride_, padding_;
  bool bias_;
  Activation activation_ = Activation::none;
  std::optional<PoolSpec> pool_;
};

}  // namespace ronda
