#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/parameter.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

/// The relation between a state's values on different ranks.
enum class Scope : std::uint8_t {
  replicated,  ///< bitwise equal on all ranks; its owner keeps it so
  averaged,    ///< each rank updates its own copy; copies are averaged over the ranks before an evaluation
               ///< (TrainingState::average_states) and when a training continues with another number of ranks
  per_rank,    ///< each rank has its own; reset when a training continues with another number of ranks
  sharded,     ///< each rank stores a piece
};

/// A tensor that exact resumption needs: a parameter, its momentum, a layer's running mean. Float32, an int64 counter,
/// or an int8 weight.
struct State {
  std::string name;
  Tensor tensor;
  Scope scope = Scope::averaged;
  std::optional<TensorDesc> flattened = {};  ///< as in Parameter, for states with the parameter's layout
};

/// A float32 state in file layout: row-major, columns ordered as for Parameter. The bits are kept.
[[nodiscard]] std::vector<float> to_file(const State& state);
/// The inverse; `file` has as many elements as the state's logical shape. Padding is not changed.
void from_file(const State& state, std::span<const float> file);

/// The same for a quantised weight.
[[nodiscard]] std::vector<std::int8_t> int8_to_file(const State& state);
void from_file(const State& state, std::span<const std::int8_t> file);

/// Visits every state of a model or an optimizer, in a fixed order.
class StateVisitor {
 public:
  virtual void visit(const State& state) = 0;

 protected:
  ~StateVisitor() = default;
};

/// Collects the visited states.
class StateList final : public StateVisitor {
 public:
  void visit(const State& state) override { states_.push_back(state); }
  [[nodiscard]] const std::vector<State>& states() const noexcept { return states_; }

 private:
  std::vector<State> states_;
};

/// A part of a state, in its own memory.
struct StateSlice {
  ParameterSlices slices;  ///< the partition of the parameter
  std::size_t part = 0;
  State state;  ///< has the part's shape and layout
};

/// The part that a rank stores of a state divided over the ranks (Scope::sharded): a contiguous range of its stored
/// elements, or a slice.
struct StatePiece {
  State whole;                           ///< its tensor is empty unless this rank stores the whole state
  float* elements = nullptr;             ///< in host memory
  std::size_t first = 0;                 ///< index of the first one among the stored elements, padding included
  std::size_t count = 0;                 ///< 0: this rank stores no part
  std::optional<StateSlice> slice = {};  ///< if set, the elements are this slice
};

/// Sets the elements. `file` holds the whole state, as for from_file of a State.
void from_file(const StatePiece& piece, std::span<const float> file);

}  // namespace ronda
