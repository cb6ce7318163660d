#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

}  // namespace ronda
