#pragma once
#include <concepts>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <ronda/core/tensor.hpp>
#include <ronda/layers/graph.hpp>

namespace ronda {

class Layer;

/// Initial values and kind of a new parameter.
struct ParameterOptions {
  std::int64_t fan_in = 0, fan_out = 0;  ///< inputs and outputs of one neuron; both 0: starts at zero, as a bias
  std::optional<Initializer> initializer = std::nullopt;  ///< nullopt: the model's initializer
  std::optional<std::int64_t> zero_row = std::nullopt;    ///< row of a table that starts at zero
  bool sparse = false;                                    ///< sparse gradient, for a table that only embeddings read
};

/// Records the operations of a model in execution order. Layer::build, and functions that build a layer, add operations
/// to it.
class GraphBuilder {
 public:
  /// @param fields  fields of the batches
  /// @param rows    rows per batch
  GraphBuilder(std::span<const Field> fields, std::size_t rows);

  /// A field of the batch: float32, or int32 for operations that take integers. Throws InputError if the field does not
  /// exist or has another type.
  Value input(std::string_view field);

  /// Whether `input` was called.
  [[nodiscard]] bool has_inputs() const noexcept { return !graph_.inputs.empty(); }

  /// Adds an operation on `inputs`. Throws InputError for shapes that do not fit, and for the wrong type: tokens and
  /// attention lengths are int32, a CustomOperation may read integers, all other inputs are float32. Throws LogicError
  /// for a value of another graph.
  /// @param owner  the layer that names the operation: `conv1`; null: the next name of the operation's kind
  Value apply(OperationSpec operation, const std::vector<Value>& inputs, std::vector<ParameterId> parameters = {},
              std::vector<StateId> states = {}, const Layer* owner = nullptr);

  /// The name of a layer: its kind and a number, `dense1`. A layer that is built twice keeps its name and its
  /// parameters.
  const std::string& name(const Layer& layer);

  /// The layer's parameter `suffix`, `dense1.weight`: a new one, or the existing one if the layer was built before.
  /// Throws InputError if that has another shape.
  ParameterId parameter(const Layer& owner, std::string_view suffix, const Shape& shape,
                        const ParameterOptions& options = {});
  /// The same for a state, which a layer keeps from step to step and does not train. Throws LogicError for types other
  /// than float32 and int64, which checkpoints cannot hold. Only float32 is averaged over ranks.
  StateId state(const Layer& owner, std::string_view suffix, const Shape& shape, DType dtype = DType::float32,
                float initial = 0, Scope scope = Scope::averaged);

  /// Layers added after this call do not change a state if `held` returns true for its name,
  /// `batch_norm1.running_mean`.
  void hold_states(std::function<bool(const std::string& state)> held) { held_ = std::move(held); }
  [[nodiscard]] bool holds(const Layer& owner, std::string_view suffix) {
    return held_ && held_(name(owner) + "." + std::string(suffix));
  }

  /// The model that computes `output`, without unused operations. Throws InputError for a parameter that `output` does
  /// not depend on, as it would never be trained. Leaves the builder empty.
  Graph finish(const Value& output);

 private:
  std::string next_name(std::string_view kind);
  Value add(const Shape& shape, DType dtype);

  std::vector<Field> fields_;
  std::size_t rows_;
  Graph graph_;
  std::map<std::string, int, std::less<>> counters_;
  /// By identity of the layer. The pointers keep the identities alive, so that no other layer gets the same address.
  std::map<std::shared_ptr<const void>, std::string> names_;
  std::function<bool(const std::string& state)> held_;
};

/// The graph of a model for batches with these fields and rows. The model receives the field `input`; without such a
/// field it calls GraphBuilder::input itself. Throws InputError if model and fields do not fit.
[[nodiscard]] Graph build_graph(const Layer& model, std::span<const Field> fields, std::size_t rows);
/// The same with `input` as the only field: float32 of this shape, including the batch axis.
[[nodiscard]] Graph build_graph(const Layer& model, const Shape& input);

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
