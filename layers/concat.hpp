#pragma once
#include <memory>
#include <utility>
#include <vector>

#include <ronda/layers/layer.hpp>

namespace ronda {

/// Applies several layers to the same x and concatenates their outputs along the last axis: the channels of images, the
/// features of rows. Building throws InputError if other extents differ.
class Concat final : public Layer {
 public:
  template <LayerLike... Layers>
  requires(sizeof...(Layers) > 1) explicit Concat(Layers&&... layers) {
    (layers_.push_back(shared_layer(std::forward<Layers>(layers))), ...);
  }

  [[nodiscard]] std::string_view kind() const noexcept override { return "concat"; }
  Value build(Value x, GraphBuilder& builder) const override {
    std::vector<Value> parts;
    for (const auto& layer : layers_) parts.push_back(layer->build(x, builder));
    const int last = parts.front().shape.rank() - 1;
    return builder.apply(ConcatSpec{last}, parts);
  }

 private:
  std::vector<std::shared_ptr<const Layer>> layers_;
};

}  // namespace ronda
