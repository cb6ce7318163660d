#pragma once
#include <memory>

#include <ronda/layers/layer.hpp>
#include <ronda/layers/planner.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda {

/// (N, H, W, C) as (N, H·W·C), without moving a byte where the samples lie dense one after another: within a Sequential
/// the features come in the order of the activation's bytes. The dense layer behind it stores its columns in that order
/// too, and only files show PyTorch's (C, H, W) order (see Parameter::flattened). To whoever does not know of that it
/// gives them in (C, H, W) order.
class Flatten final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "flatten"; }
  [[nodiscard]] bool reads_any_layout() const noexcept override { return true; }
  [[nodiscard]] bool runs_on_any_device() const noexcept override { return true; }
  /// A (N, features) it gives as it is.
  [[nodiscard]] FeatureOrder feature_order() const noexcept override { return FeatureOrder::kept; }
  [[nodiscard]] GradientFlow gradient_flow() const noexcept override {
    return reorder_ ? GradientFlow::own : GradientFlow::any;
  }
  void bind(const Bindings& bindings) override;
  const Tensor& forward(const Tensor& input, const Pass& pass) override;
  const Tensor& backward(const Tensor& output_gradient, const Pass& pass) override;

 protected:
  TensorDesc plan(const TensorDesc& input, Planner& planner) override;

 private:
  TensorDesc image_;                    ///< what is read as features: the input, or its reordered copy
  std::unique_ptr<Operation> reorder_;  ///< where the input's bytes are padded or interleaved
  BufferId copy_id_{}, gradient_id_{};
  Tensor input_, copy_, output_, gradient_;
  TensorDesc output_desc_, input_desc_;
  bool gradient_needed_ = false;
};

}  // namespace ronda
