#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ronda {

/// The rows of a table that have a gradient in a step, each once and in the order in which they came; the gradient of
/// every other row is zero. There is room for all rows of the table, so a step allocates nothing.
///
/// The list lies in memory of the caller's, which other ranks may read: the number of rows, then the rows.
class TouchedRows {
 public:
  /// Numbers of memory for a table of so many rows.
  [[nodiscard]] static constexpr std::size_t length(std::size_t rows) noexcept { return rows + 1; }

  /// @param memory  `length(rows)` zeros, for this object alone; outlives it
  explicit TouchedRows(std::span<std::int32_t> memory) : memory_(memory), known_(memory.size() - 1) {}

  /// Returns whether it is new.
  bool add(std::int32_t row) noexcept {
    char& known = known_[static_cast<std::size_t>(row)];
    if (known != 0) return false;
    known = 1;
    memory_[static_cast<std::size_t>(++memory_[0])] = row;
    return true;
  }
  /// Becomes these rows, in this order; each once.
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
  /// The number of rows, then the rows: for those who read it where it is shared.
  [[nodiscard]] std::span<std::int32_t> memory() const noexcept { return memory_; }
  /// Of the table.
  [[nodiscard]] std::size_t capacity() const noexcept { return known_.size(); }

 private:
  std::span<std::int32_t> memory_;
  std::vector<char> known_;  ///< by row
};

}  // namespace ronda
