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
/// Consecutive layers are fused where one operation can compute them (here convolution, ReLU and pooling): see fuse.
class Sequential final : public Layer {
 public:
  Sequential() = default;
  template <LayerLike... Layers>
  requires(sizeof...(Layers) > 1 ||
           !(std::same_as<std::remove_cvref_t<Layers>, Sequential> && ...)) explicit Sequential(Layers&&... layers) {
    (add(std::forward<Layers>(layers)), ...);
  }

  /// Appends a layer, or a function that builds one.
  void add(std::shared_ptr<const Layer> layer) { layers_.push_back(std::move(layer)); }
  template <LayerLike L>
  void add(L&& layer) {
    add(shared_layer(std::forward<L>(layer)));
  }

  [[nodiscard]] std::string_view kind() const noexcept override { return "sequential"; }
  Value build(Value x, GraphBuilder& builder) const override {
    for (const auto& layer : layers_) x = layer->build(x, builder);
    return x;
  }

 private:
  std::vector<std::shared_ptr<const Layer>> layers_;
};

}  // namespace ronda
