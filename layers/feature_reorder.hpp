#pragma once
#include <memory>

#include <ronda/layers/layer.hpp>
#include <ronda/layers/planner.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda {

/// An image (N, H, W, C) whose bytes, sample by sample, are in (C, H, W) order, as PyTorch's features are behind a
/// flatten.
[[nodiscard]] TensorDesc logical_order_of(const TensorDesc& image);
[[nodiscard]] bool in_logical_order(const TensorDesc& image);

/// Features (N, H·W·C) that a Flatten has left in the order of an image's bytes (Planner::flattened), in (C, H, W)
/// order: before a layer that does not know of that.
class FeatureReorder final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "feature_reorder"; }
  [[nodiscard]] bool reads_any_layout() const noexcept override { return true; }
  [[nodiscard]] bool runs_on_any_device() const noexcept override { return true; }
  [[nodiscard]] GradientFlow gradient_flow() const noexcept override { return GradientFlow::own; }
  [[nodiscard]] FeatureOrder feature_order() const noexcept override { return FeatureOrder::read; }
  void bind(const Bindings& bindings) override;
  const Tensor& forward(const Tensor& input, const Pass& pass) override;
  const Tensor& backward(const Tensor& output_gradient, const Pass& pass) override;

 protected:
  TensorDesc plan(const TensorDesc& input, Planner& planner) override;

 private:
  TensorDesc features_, image_, logical_;
  std::unique_ptr<Operation> reorder_;
  BufferId output_id_{}, gradient_id_{};
  Tensor input_, output_, gradient_;
  bool gradient_needed_ = false;
};

}  // namespace ronda
