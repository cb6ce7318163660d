#pragma once
#include <cstddef>
#include <cstdint>

namespace ronda::onednn {

/// Products that take of a matrix x (rows, columns) only the numbers that are not 0: of pictures on a black ground, or
/// of what a ReLU left. They are *marked*, each by a bit. Sums go up in the same order as with all numbers, and a
/// product with 0 changes no sum, so bits are equal, but for the sign of a 0: whether to mark may be decided batch by
/// batch. (But a weight that is not finite is seen by the others alone.)
///
/// For AVX-512 and AVX2, as Panels.
class NonZeros {
 public:
  static constexpr std::int64_t width = 64;  ///< of the other matrix: a panel's
  static constexpr std::int64_t chunk = 64;  ///< columns that a mark of a row stands for, and rows of a column's

  NonZeros(std::int64_t rows, std::int64_t columns);

  /// Of marks, of rows or of columns.
  [[nodiscard]] std::size_t bytes() const noexcept;

  /// Mark all numbers. Return whether they are so few that products by marks are faster.
  bool mark_rows(const float* x, std::uint64_t* marks) const;
  bool mark_columns(const float* x, std::uint32_t* marks) const;

  /// c (rows, 64) += columns `first` to first + chunk of x · b (chunk, 64)
  void add_rows(const float* x, const std::uint64_t* marks, std::int64_t first, const float* b, float* c) const;
  /// c (columns, 64) = xᵀ · b (rows, 64)
  void multiply_columns(const float* x, const std::uint32_t* marks, const float* b, float* c) const;

 private:
  [[nodiscard]] bool are_few(std::int64_t count) const noexcept;

  // By the instructions of a set, AVX-512 or AVX2.
  template <class Set>
  bool mark_rows_by(const float* x, std::uint64_t* marks) const;
  template <class Set>
  bool mark_columns_by(const float* x, std::uint32_t* marks) const;
  template <class Set>
  void add_rows_by(const float* x, const std::uint64_t* marks, std::int64_t first, const float* b, float* c) const;
  template <class Set>
  void multiply_columns_by(const float* x, const std::uint32_t* marks, const float* b, float* c) const;

  std::int64_t rows_, columns_;
  std::int64_t row_marks_;     ///< words of a row
  std::int64_t column_marks_;  ///< pairs of words of a column
  std::int64_t padded_;        ///< columns, to whole vectors
};

}  // namespace ronda::onednn
