#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/tensor.hpp>

namespace ronda {

/// How a state's numbers on the ranks belong together.
enum class Scope : std::uint8_t {
  replicated,  ///< all ranks have the same bits, and whoever holds it keeps it so
  averaged,    ///< each rank changes its own, and now and then all take the mean over the ranks: before they evaluate
               ///< (TrainingState::average_states), and where a training goes on with another number of ranks
  per_rank,    ///< each rank has its own, and a training with another number of ranks begins anew with it
  sharded,     ///< each rank has a piece
};

/// Something that exact continuation needs: a parameter, its momentum, a layer's running mean. Float32, a counter of
/// int64, or a weight of int8.
struct State {
  std::string name;
  Tensor tensor;
  Scope scope = Scope::averaged;
  std::optional<TensorDesc> flattened = {};  ///< as in Parameter: what belongs to one lies as it does
};

/// A float32 state in file layout: row-major, columns in (C, H, W) order where they were flattened. The bits are kept.
[[nodiscard]] std::vector<float> to_file(const State& state);
/// The inverse; `file` has as many elements as the state's logical shape. Padding stays as it is.
void from_file(const State& state, std::span<const float> file);

/// The same of a quantised weight.
[[nodiscard]] std::vector<std::int8_t> int8_to_file(const State& state);
void from_file(const State& state, std::span<const std::int8_t> file);

/// Is shown every state of a model or an optimizer, in an order that does not change.
class StateVisitor {
 public:
  virtual void visit(const State& state) = 0;

 protected:
  ~StateVisitor() = default;
};

/// Collects the states that it is shown.
class StateList final : public StateVisitor {
 public:
  void visit(const State& state) override { states_.push_back(state); }
  [[nodiscard]] const std::vector<State>& states() const noexcept { return states_; }

 private:
  std::vector<State> states_;
};

}  // namespace ronda
