#pragma once
#include <cstdint>

namespace ronda::onednn {

/// c (rows, columns) = a (rows, depth) · b (depth, columns), or added to what c holds, for matrices that stay in the
/// caches. Rows of b and c lie together; of a any element lies anywhere, so it may be a transpose.
///
/// Six rows of c are in registers, 32 columns at a time (16 without AVX-512), while b goes by. Sums go up in the order
/// of depth. Multiplies and adds in one where the processor can: the bits depend on the processor, and on nothing else.
struct SmallProduct {
  const float* a;
  std::int64_t a_row, a_column;  ///< from one row, or column, of a to the next
  const float* b;
  std::int64_t b_row;
  float* c;
  std::int64_t c_row;
  std::int64_t rows, depth, columns;
  bool add = false;
};
void multiply(const SmallProduct& product);

/// Rows of c that a product keeps in registers at once.
inline constexpr std::int64_t product_rows = 6;
/// Columns that it is fastest for multiples of.
inline constexpr std::int64_t product_columns = 32;

}  // namespace ronda::onednn
