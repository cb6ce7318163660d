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

/// main(x) + x, or main(x) + shortcut(x) for a main part that changes the shape (He et al., "Deep residual learning for
/// image recognition", CVPR 2016). Building throws InputError where the two shapes differ.
class Residual final : public Layer {
 public:
  /// Residual(residual) copies; to nest one Residual in another, wrap it in a Sequential.
  template <LayerLike Main>
  requires(!std::same_as<Main, Residual>) explicit Residual(Main main) : main_(shared_layer(std::move(main))) {}
  template <LayerLike Main, LayerLike Shortcut>
  Residual(Main main, Shortcut shortcut)
      : main_(shared_layer(std::move(main))), shortcut_(shared_layer(std::move(shortcut))) {}

  [[nodiscard]] std::string_view kind() const noexcept override { return "residual"; }
  Value build(Value x, GraphBuilder& builder) const override {
    const Value y = main_->build(x, builder);
    return builder.apply(AddSpec{}, {y, shortcut_ ? shortcut_->build(x, builder) : x});
  }

 private:
  std::shared_ptr<const Layer> main_, shortcut_;
};

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
