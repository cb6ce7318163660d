#pragma once
#include <memory>
#include <utility>

#include <ronda/layers/layer.hpp>

namespace ronda {

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

}  // namespace ronda
