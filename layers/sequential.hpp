#pragma once
#include <memory>
#include <utility>
#include <vector>

#include <ronda/layers/layer.hpp>

namespace ronda {

/// Layers one after another:
///
///     Sequential model(Conv2d(32, 3), ReLU(), MaxPool2d(2), Flatten(), Dense(10));
///
/// Planned so that neighbours that know each other become one operation (convolution, ReLU and pooling here). Within a
/// composite of a user's own, which does not read any layout, it gives plain tensors.
class Sequential final : public Layer {
 public:
  Sequential() = default;
  template <class... Layers>
  requires(std::derived_from<std::remove_cvref_t<Layers>, Layer>&&...) explicit Sequential(Layers&&... layers) {
    (add(std::make_unique<std::remove_cvref_t<Layers>>(std::forward<Layers>(layers))), ...);
  }
  Sequential(Sequential&&) = default;
  Sequential& operator=(Sequential&&) = default;

  /// Appends a layer. Before planning only.
  void add(std::unique_ptr<Layer> layer) { layers_.push_back(std::move(layer)); }
  template <class L>
  requires std::derived_from<L, Layer>
  void add(L layer) { add(std::make_unique<L>(std::move(layer))); }

  [[nodiscard]] std::string_view kind() const noexcept override { return "sequential"; }
  [[nodiscard]] bool reads_any_layout() const noexcept override { return true; }
  [[nodiscard]] bool runs_on_any_device() const noexcept override;
  [[nodiscard]] GradientFlow gradient_flow() const noexcept override { return GradientFlow::chain; }
  [[nodiscard]] FeatureOrder feature_order() const noexcept override { return FeatureOrder::read; }
  void bind(const Bindings& bindings) override;
  const Tensor& forward(const Tensor& input, const Pass& pass) override;
  const Tensor& backward(const Tensor& output_gradient, const Pass& pass) override;
  void visit(StateVisitor& visitor) override;

 protected:
  TensorDesc plan(const TensorDesc& input, Planner& planner) override;

 private:
  [[nodiscard]] std::vector<Layer*> fused() const;
  TensorDesc plan_next(Layer& layer, TensorDesc desc, Planner& planner);
  TensorDesc plan_plain(const TensorDesc& desc, Planner& planner);
  TensorDesc plan_logical_order(const TensorDesc& desc, Planner& planner);

  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<std::unique_ptr<Layer>> reorders_;  ///< before layers that read plain tensors or (C, H, W) order alone
  std::vector<Layer*> run_;                       ///< those that were not absorbed by the one before, and the reorders
};

}  // namespace ronda
