#pragma once
#include <concepts>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include <ronda/layers/graph_builder.hpp>

namespace ronda {

/// A piece of a model. It describes operations and holds no memory, so a layer may be part of several models, and occur
/// several times in one. All its occurrences in a model, and those of its copies, share one set of parameters;
/// construct another layer for separate parameters.
class Layer {
 public:
  virtual ~Layer() = default;

  /// The usual name of the layer ("dense", "conv"). Layers are numbered by kind: `dense1.weight`.
  [[nodiscard]] virtual std::string_view kind() const noexcept = 0;

  /// Adds its operations on `x` to the builder and returns their output. Throws InputError for a shape that the layer
  /// does not accept.
  virtual Value build(Value x, GraphBuilder& builder) const = 0;

  /// An identity that all copies of a layer share.
  [[nodiscard]] const std::shared_ptr<const void>& identity() const noexcept { return identity_; }

 protected:
  Layer() : identity_(std::make_shared<char>()) {}
  Layer(const Layer&) = default;
  Layer& operator=(const Layer&) = default;

 private:
  std::shared_ptr<const void> identity_;
};

/// A layer that a function builds: `[](Value x, GraphBuilder& b) { … }`.
class Function final : public Layer {
 public:
  using Build = std::function<Value(Value, GraphBuilder&)>;
  explicit Function(Build build) : build_(std::move(build)) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "function"; }
  Value build(Value x, GraphBuilder& builder) const override { return build_(x, builder); }

 private:
  Build build_;
};

/// An argument of composite layers: a layer, or a function that builds one.
template <class T>
concept LayerLike = std::derived_from<std::remove_cvref_t<T>, Layer> || std::convertible_to<T, Function::Build>;

/// Moves or copies a layer to shared memory; wraps a function as a layer.
template <LayerLike L>
[[nodiscard]] std::shared_ptr<const Layer> shared_layer(L&& layer) {
  if constexpr (std::derived_from<std::remove_cvref_t<L>, Layer>)
    return std::make_shared<std::remove_cvref_t<L>>(std::forward<L>(layer));
  else
    return std::make_shared<Function>(std::forward<L>(layer));
}

}  // namespace ronda
