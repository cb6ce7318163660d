#pragma once
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ronda/core/field.hpp>
#include <ronda/layers/graph.hpp>

namespace ronda {

class Layer;

/// What a parameter starts with.
struct ParameterOptions {
  std::int64_t fan_in = 0, fan_out = 0;                   ///< of one neuron; both 0: it starts at zero, as a bias
  std::optional<Initializer> initializer = std::nullopt;  ///< where the layer insists; otherwise the model's
  std::optional<std::int64_t> zero_row = std::nullopt;    ///< of a table: a row that starts at zero
  bool sparse = false;  ///< a table whose gradient is to be sparse; it is where embeddings alone read it
};

/// Writes a model's operations down, in the order in which they are to run. Layers are given it (Layer::build), and so
/// is a function of a user's own.
class GraphBuilder {
 public:
  /// @param fields  of the batches
  /// @param rows    of each
  GraphBuilder(std::span<const Field> fields, std::size_t rows);

  /// A field of the batch: float32, or int32 for an operation that reads that. Throws InputError for a field that there
  /// is not, or of another type.
  Value input(std::string_view field);

  /// Whether a field was asked for.
  [[nodiscard]] bool has_inputs() const noexcept { return !graph_.inputs.empty(); }

  /// An operation on `inputs`. Throws InputError for shapes that do not fit, and for whole numbers where the operation
  /// is neither an embedding, which takes nothing else, nor an attention's length, nor a CustomOperation; LogicError
  /// for a value of another graph.
  /// @param owner  whose name it has: `conv1`; null: the next of its own kind
  Value apply(OperationSpec operation, const std::vector<Value>& inputs, std::vector<ParameterId> parameters = {},
              std::vector<StateId> states = {}, const Layer* owner = nullptr);

  /// The name of a layer: its kind and a number, `dense1`. A layer that is built twice has one name, and so one set of
  /// parameters.
  const std::string& name(const Layer& layer);

  /// The layer's parameter `suffix`, `dense1.weight`: a new one, or the same as when the layer was built before. Throws
  /// InputError where that had another shape.
  ParameterId parameter(const Layer& owner, std::string_view suffix, const Shape& shape,
                        const ParameterOptions& options = {});
  /// The same for what a layer keeps and does not train. Throws LogicError for a type that is neither float32 nor
  /// int64: only float32 is averaged over ranks, and checkpoints hold these two.
  StateId state(const Layer& owner, std::string_view suffix, const Shape& shape, DType dtype = DType::float32,
                float initial = 0, Scope scope = Scope::averaged);

  /// Layers added after this call hold each state for whose name (`batch_norm1.running_mean`) `held` returns true.
  void hold_states(std::function<bool(const std::string& state)> held) { held_ = std::move(held); }
  [[nodiscard]] bool holds(const Layer& owner, std::string_view suffix) {
    return held_ && held_(name(owner) + "." + std::string(suffix));
  }

  /// The model that gives `output`, without the operations that nothing reads. Throws InputError for a parameter that
  /// has no part in it: it would never be trained. The builder is empty then.
  Graph finish(const Value& output);

 private:
  std::string next_name(std::string_view kind);
  Value add(const Shape& shape, DType dtype);

  std::vector<Field> fields_;
  std::size_t rows_;
  Graph graph_;
  std::map<std::string, int, std::less<>> counters_;
  /// By identity of the layer; held, so that no other layer takes its place meanwhile.
  std::map<std::shared_ptr<const void>, std::string> names_;
  std::function<bool(const std::string& state)> held_;
};

/// The graph of a model that is given the field `input` of batches with these fields and rows. Where there is none, the
/// model asks the builder for others. Throws InputError for what does not fit.
[[nodiscard]] Graph build_graph(const Layer& model, std::span<const Field> fields, std::size_t rows);
/// The same where `input` is the only field: float32 of this shape, the batch included.
[[nodiscard]] Graph build_graph(const Layer& model, const Shape& input);

}  // namespace ronda
