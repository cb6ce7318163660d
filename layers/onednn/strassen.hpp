#pragma once
#include <cstddef>
#include <cstdint>

#include <ronda/core/parallel.hpp>
#include <ronda/layers/onednn/strassen_tile.hpp>

namespace ronda::onednn {

/// c (rows, columns) = a (rows, depth) · b (depth, columns), for large float32 matrices, with seven eighths of the
/// multiplications: by Winograd's form of Strassen's algorithm, one level of it.
///
/// a, b and c are cut into halves both ways, and c's four quarters are made of seven products of sums of quarters
/// instead of eight products of quarters:
///
///     s1 = a21 + a22      t1 = b12 - b11      p1 = a11 · b11    p5 = s1 · t1     c11 = p1 + p2
///     s2 = s1 - a11       t2 = b22 - t1       p2 = a12 · b21    p6 = s2 · t2     c12 = p1 + p6 + p5 + p3
///     s3 = a11 - a21      t3 = b22 - b12      p3 = s4 · b22     p7 = s3 · t3     c21 = p1 + p6 + p7 - p4
///     s4 = a12 - s2       t4 = t2 - b21       p4 = a22 · t4                      c22 = p1 + p6 + p7 + p5
///
/// (Strassen, "Gaussian elimination is not optimal", Numerische Mathematik 1969; Higham, "Accuracy and Stability of
/// Numerical Algorithms", chapter 23, for this form and its error.) The halves lie side by side: twelve rows and the
/// twelve below them, 32 columns and the 32 beside them, up to 256 of the depth and as many behind them. So c's
/// quarters are four tiles that stay in the first-level cache until they are whole, and what is added first is written
/// where the kernel wants its factors to be copied anyway.
///
/// Exact for small whole numbers, as any sum. Otherwise an element's error is a few roundings of the largest of its
/// tile's products, not of its own terms alone: a row gets the noise of a far larger one 12 rows away, and its NaN. On
/// random numbers it is one to four times that of a plain sum in float32. Sums of four numbers are multiplied, so that
/// factors beyond a quarter of the largest float may overflow where a plain sum does not. So it is for training; not
/// for tests and predictions, in which samples must not depend on their neighbours. Equal bits from run to run,
/// whatever the threads.
class Strassen {
 public:
  /// Where an element (i, k) of a factor lies: at i · line + k · step. One of them is 1. k goes along the depth.
  struct Strides {
    std::int64_t line, step;
  };

  /// Whether this processor has the registers for it (32 vectors of 16 numbers); elsewhere it must not run.
  [[nodiscard]] static bool suit_processor() noexcept;

  /// c's rows lie one after another.
  /// @param a  of (row, k)
  /// @param b  of (column, k)
  Strassen(std::int64_t rows, std::int64_t depth, std::int64_t columns, Strides a, Strides b, int threads);

  /// @param bias     of the columns; null for none
  /// @param scratch  `scratch_bytes()` bytes, aligned to Buffer::alignment
  void run(const float* a, const float* b, const float* bias, float* c, std::byte* scratch) const;
  [[nodiscard]] std::size_t scratch_bytes() const noexcept;

  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::int64_t depth() const noexcept { return depth_; }
  [[nodiscard]] std::int64_t columns() const noexcept { return columns_; }

 private:
  struct Operand;
  /// c's part of a strip and a panel, from the piece of the depth that begins at k.
  struct Tile {
    std::int64_t strip, panel, k;
    const float *a, *b;  ///< packed
  };

  [[nodiscard]] Operand rows_of(const float* a) const;
  [[nodiscard]] Operand columns_of(const float* b) const;
  [[nodiscard]] strassen::Ahead ahead(const Operand& operand, std::int64_t strip, std::int64_t k,
                                      std::int64_t turns) const;
  void multiply(const Tile& tile, const float* bias, float* c, strassen::Ahead& next) const;

  std::int64_t rows_, depth_, columns_;
  Strides a_, b_;
  std::int64_t quarter_;  ///< of the depth that is multiplied at once
  int threads_;
};

}  // namespace ronda::onednn
