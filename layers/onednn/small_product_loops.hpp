// Products in the words of vectors.hpp. No guard: small_product.cpp includes this once in each namespace that has the
// words, for a RONDA_SET.

namespace {

template <int rows, int vectors>
RONDA_LOOP_INLINE void multiply_tile(const SmallProduct& p, std::int64_t row, std::int64_t column) {
  const float *a = p.a + row * p.a_row, *b = p.b + column;
  float* const c = p.c + row * p.c_row + column;
  Vector sum[rows][vectors];
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) sum[r][v] = p.add ? load_anywhere(c + r * p.c_row + v * lanes) : zeros();
  for (std::int64_t k = 0; k < p.depth; ++k) {
    Vector row_of_b[vectors];
    for (int v = 0; v < vectors; ++v) row_of_b[v] = load_anywhere(b + k * p.b_row + v * lanes);
    for (int r = 0; r < rows; ++r) {
      const Vector element = all(a[r * p.a_row + k * p.a_column]);
      for (int v = 0; v < vectors; ++v) sum[r][v] = add_product(element, row_of_b[v], sum[r][v]);
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) store_anywhere(c + r * p.c_row + v * lanes, sum[r][v]);
}

template <int rows>
RONDA_LOOP_INLINE void multiply_rows(const SmallProduct& p, std::int64_t row) {
  std::int64_t column = 0;
  for (; column + 2 * lanes <= p.columns; column += 2 * lanes) multiply_tile<rows, 2>(p, row, column);
  for (; column + lanes <= p.columns; column += lanes) multiply_tile<rows, 1>(p, row, column);
  if (column < p.columns) multiply_edge<rows>(p, row, column);
}

RONDA_LOOP void multiply_all(const SmallProduct& p) {
  std::int64_t row = 0;
  for (; row + product_rows <= p.rows; row += product_rows) multiply_rows<product_rows>(p, row);
  for (; row + 2 <= p.rows; row += 2) multiply_rows<2>(p, row);
  if (row < p.rows) multiply_rows<1>(p, row);
}

}  // namespace
