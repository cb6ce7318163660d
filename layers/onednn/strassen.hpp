#pragma once
#include <cstddef>
#include <cstdint>

#include <ronda/layers/onednn/strassen_tile.hpp>

namespace ronda::onednn {

/// c (rows, columns) = a (rows, depth) · b (depth, columns), for large float32 matrices, with 49 of 64 multiplications:
/// by two levels of Winograd's form of Strassen's algorithm.
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
/// Numerical Algorithms", chapter 23, for this form and its error.) Each of the seven is made in the same way again, of
/// quarters of those sums. The parts lie side by side: four times twelve rows, four times 32 columns, four times up to
/// 128 of the depth. So a tile of c has 48 x 128 numbers (strassen_tile.hpp). No sum takes a pass over memory of its
/// own: those of factors are made where they are copied for the kernel anyway (strassen_packing.cpp), and those of
/// products where the kernel writes them (Huang, Smith, Henry and van de Geijn, "Strassen's algorithm reloaded", SC
/// 2016).
///
/// The result is exact for small whole numbers, as any sum is, and where a row of a or a column of b is 0 (a unit that
/// a ReLU shut). Otherwise an element's error is some roundings of the largest product of its tile: an element gets the
/// noise, and the NaN, of a row of a up to 47 rows away, and of a column of b up to 127 columns away. On random numbers
/// the root mean square of the error is 1.0e-6 to 1.5e-6 of
/// the result's, for depths of 256 to 4096. Sums of sixteen numbers are multiplied, so that factors beyond a sixteenth
/// of the largest float, and products beyond a 256th of it, may overflow where a plain sum does not. So it is for
/// training; not for tests and predictions, in which samples must not depend on their neighbours. Equal bits from run
/// to run, whatever the threads.
///
/// Where *steps are paired*, of every three steps of the depth two share one multiplication:
///
///     x1 · y1 + x2 · y2 = (x1 + y2) · (x2 + y1) - x1 · x2 - y1 · y2
///
/// The last two terms belong to one factor each, and are summed up where it is packed. (Winograd, "A New Algorithm for
/// Inner Product", IEEE Transactions on Computers 1968.) That pays on a processor with pipes of their own for sums, as
/// AMD's Zen 4: of three steps its multiply-adds take the time of two. Sums of x and y want both of one size (Higham,
/// chapter 23): each strip is scaled by a power of two to a mean magnitude of about 1, and c's part scaled back. The
/// error on random numbers is then 1.4e-6 to 2.1e-6. It grows with the square of the largest magnitude over the mean,
/// so a tile takes single steps where its strip of a or of b is not *balanced*: beyond 16 times, or with an extreme
/// mean or a number that is none.
class Strassen {
 public:
  /// Where an element (i, k) of a factor lies: at i · line + k · step. One of them is 1. k goes along the depth.
  struct Strides {
    std::int64_t line, step;
  };

  /// Of the depth.
  enum class Steps { single, paired };

  /// Whether this processor has the registers for it (32 vectors of 16 numbers); elsewhere it must not run.
  [[nodiscard]] static bool suit_processor() noexcept;

  /// c's rows lie one after another. Rows, depth and columns are at least 1.
  /// @param a  of (row, k)
  /// @param b  of (column, k)
  Strassen(std::int64_t rows, std::int64_t depth, std::int64_t columns, Strides a, Strides b, Steps steps, int threads);

  /// @param bias     of the columns; null for none
  /// @param scratch  `scratch_bytes()` bytes, aligned to Buffer::alignment
  void run(const float* a, const float* b, const float* bias, float* c, std::byte* scratch) const;
  [[nodiscard]] std::size_t scratch_bytes() const noexcept;

  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::int64_t depth() const noexcept { return depth_; }
  [[nodiscard]] std::int64_t columns() const noexcept { return columns_; }

 private:
  struct Operand;
  struct Roles;
  /// Of the depth.
  struct Piece {
    std::int64_t k;  ///< where it begins
    const float *staying, *bias;
    float* c;
  };
  /// c's part of a strip of a and a panel of b.
  struct Tile {
    std::int64_t strip, panel;
    const float *a, *b;  ///< packed
  };

  [[nodiscard]] Roles roles(const float* a, const float* b) const;
  [[nodiscard]] strassen::Ahead source_of(const Operand& operand, std::int64_t strip, std::int64_t k,
                                          std::int64_t turns) const;
  void multiply(const Piece& piece, const Tile& tile, strassen::Ahead& next) const;
  void write_zero_lines(const float* a, const float* b, const float* bias, float* c) const;
  void pass_by(const Roles& roles, const Piece& piece, std::int64_t begin, std::int64_t end, float* packed) const;

  std::int64_t rows_, depth_, columns_;
  Strides a_, b_;
  bool paired_;
  std::int64_t quarter_;  ///< of the depth that is multiplied at once
  int threads_;
};

}  // namespace ronda::onednn
