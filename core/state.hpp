#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/parallel.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

/// The rows of a table that have a gradient in a step, each once, in the order of `add`; the gradient of every other
/// row is zero. There is room for all rows of the table, so a step allocates nothing.
///
/// The list is in the caller's memory, which other ranks may read: the number of rows, then the rows.
class TouchedRows {
 public:
  /// Length of the list's memory for a table of `rows` rows.
  [[nodiscard]] static constexpr std::size_t length(std::size_t rows) noexcept { return rows + 1; }

  /// @param memory  `length(rows)` zeros, used only by this object; outlives it
  explicit TouchedRows(std::span<std::int32_t> memory) : memory_(memory), known_(memory.size() - 1) {}

  /// Returns whether the row is new.
  bool add(std::int32_t row) noexcept {
    char& known = known_[static_cast<std::size_t>(row)];
    if (known != 0) return false;
    known = 1;
    memory_[static_cast<std::size_t>(++memory_[0])] = row;
    return true;
  }
  /// Replaces the list by `rows`, without repetitions, in their order.
  void assign(std::span<const std::int32_t> rows) noexcept {
    clear();
    for (const std::int32_t row : rows) add(row);
  }
  void clear() noexcept {
    for (const std::int32_t row : rows()) known_[static_cast<std::size_t>(row)] = 0;
    memory_[0] = 0;
  }

  [[nodiscard]] std::span<const std::int32_t> rows() const noexcept {
    return std::span<const std::int32_t>(memory_).subspan(1, static_cast<std::size_t>(memory_[0]));
  }
  /// The number of rows, then the rows: for readers of shared memory.
  [[nodiscard]] std::span<std::int32_t> memory() const noexcept { return memory_; }
  /// Rows of the table.
  [[nodiscard]] std::size_t capacity() const noexcept { return known_.size(); }

 private:
  std::span<std::int32_t> memory_;
  std::vector<char> known_;  ///< by row: whether it is in the list
};

/// A parameter's number in its model, counted from 0 in order of use.
enum class ParameterId : std::uint32_t {};
[[nodiscard]] constexpr std::size_t index_of(ParameterId id) noexcept { return static_cast<std::size_t>(id); }

/// A trained tensor and its gradient, which have one layout and one type. Views into arenas that the strategy owns.
struct Parameter {
  ParameterId id{};
  std::string name;  ///< as in files: `conv1.weight`
  Tensor value, gradient;
  std::optional<Tensor> master;  ///< float32 copy, if `value` has a half type

  /// A dense weight after a flatten stores its columns in the memory order of the flattened activation. This describes
  /// one sample of that activation: (H, W, C) or (T, C), with its layout. Files hold the columns in (C, H, W) order, as
  /// PyTorch does, or in (T, C) order.
  std::optional<TensorDesc> flattened;

  /// For a table with a sparse gradient: the rows that have a gradient. Backward adds to these rows and to this list;
  /// their owner clears both before a step. Null: backward writes the whole gradient.
  TouchedRows* touched = nullptr;

  /// The float32 values that the optimizer updates: for files, hashes and initial values.
  [[nodiscard]] const Tensor& trained() const noexcept { return master ? *master : value; }
};

/// The parameter in file layout: row-major, the columns ordered as described at `flattened`.
[[nodiscard]] std::vector<float> to_file(const Parameter& parameter, const Tensor& stored);
/// The inverse; `file` has as many elements as the parameter's logical shape. Padding is not changed.
void from_file(const Parameter& parameter, std::span<const float> file, const Tensor& stored);

/// The partition of a parameter in file layout. The whole is (outer, extent, inner), row-major; each part has a range,
/// possibly empty, of the middle axis.
struct ParameterSlices {
  int axis = 0;  ///< axis of the parameter's shape: the middle axis, or with it the outer one
  std::int64_t outer = 1, extent = 1, inner = 1;
  std::vector<Range> parts;

  /// Elements of a part.
  [[nodiscard]] std::size_t count(std::size_t part) const noexcept {
    return static_cast<std::size_t>(outer * inner) * parts[part].size();
  }
  /// Copies a part out of the whole, or into it, both row-major.
  void take(std::span<const float> whole, std::size_t part, std::span<float> taken) const;
  void put(std::span<const float> taken, std::size_t part, std::span<float> whole) const;
};

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
