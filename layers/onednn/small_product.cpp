#include <ronda/core/multiversion.hpp>
#include <ronda/layers/onednn/small_product.hpp>

#include <cstring>

namespace ronda::onednn {
namespace {

/// Sums in a register that stay there, which loops over arrays do not.
using Sixteen = float __attribute__((vector_size(64)));
constexpr std::int64_t sixteen = 16;

[[gnu::always_inline]] inline void load(const float* from, Sixteen& into) { std::memcpy(&into, from, sizeof(into)); }
[[gnu::always_inline]] inline void store(const Sixteen& from, float* into) { std::memcpy(into, &from, sizeof(from)); }

template <int rows, int vectors>
[[gnu::always_inline]] inline void multiply_tile(const SmallProduct& p, std::int64_t row, std::int64_t column) {
  const float *a = p.a + row * p.a_row, *b = p.b + column;
  float* c = p.c + row * p.c_row + column;
  Sixteen sum[rows][vectors] = {};
  if (p.add)
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v) load(c + r * p.c_row + v * sixteen, sum[r][v]);
  for (std::int64_t k = 0; k < p.depth; ++k) {
    Sixteen row_of_b[vectors];
    for (int v = 0; v < vectors; ++v) load(b + k * p.b_row + v * sixteen, row_of_b[v]);
    for (int r = 0; r < rows; ++r) {
      const float element = a[r * p.a_row + k * p.a_column];
      for (int v = 0; v < vectors; ++v) sum[r][v] += element * row_of_b[v];
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) store(sum[r][v], c + r * p.c_row + v * sixteen);
}

/// Fewer than sixteen columns.
template <int rows>
[[gnu::always_inline]] inline void multiply_edge(const SmallProduct& p, std::int64_t row, std::int64_t column) {
  for (int r = 0; r < rows; ++r) {
    const float* a = p.a + (row + r) * p.a_row;
    float* c = p.c + (row + r) * p.c_row;
    for (std::int64_t j = column; j < p.columns; ++j) {
      float sum = p.add ? c[j] : 0.0F;
      for (std::int64_t k = 0; k < p.depth; ++k) sum += a[k * p.a_column] * p.b[k * p.b_row + j];
      c[j] = sum;
    }
  }
}

template <int rows>
[[gnu::always_inline]] inline void multiply_rows(const SmallProduct& p, std::int64_t row) {
  std::int64_t column = 0;
  for (; column + 2 * sixteen <= p.columns; column += 2 * sixteen) multiply_tile<rows, 2>(p, row, column);
  for (; column + sixteen <= p.columns; column += sixteen) multiply_tile<rows, 1>(p, row, column);
  if (column < p.columns) multiply_edge<rows>(p, row, column);
}

RONDA_MULTIVERSION void multiply_all(const SmallProduct& p) {
  std::int64_t row = 0;
  for (; row + product_rows <= p.rows; row += product_rows) multiply_rows<product_rows>(p, row);
  for (; row + 2 <= p.rows; row += 2) multiply_rows<2>(p, row);
  if (row < p.rows) multiply_rows<1>(p, row);
}

}  // namespace

void multiply(const SmallProduct& product) { multiply_all(product); }

}  // namespace ronda::onednn
