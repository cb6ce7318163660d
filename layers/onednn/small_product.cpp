#include <ronda/layers/onednn/processor.hpp>
#include <ronda/layers/onednn/small_product.hpp>
#include <ronda/layers/onednn/vectors.hpp>

namespace ronda::onednn {
namespace {

/// Number by number: fewer columns than a vector has, or all of them where there are no vectors.
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

void multiply_plainly(const SmallProduct& p) {
  for (std::int64_t row = 0; row < p.rows; ++row) multiply_edge<1>(p, row, 0);
}

}  // namespace

#if defined(__x86_64__)
namespace avx512 {
#define RONDA_SET RONDA_AVX512_SET
#include <ronda/layers/onednn/small_product_loops.hpp>
#undef RONDA_SET
}  // namespace avx512

namespace avx2 {
#define RONDA_SET RONDA_AVX2_SET
#include <ronda/layers/onednn/small_product_loops.hpp>
#undef RONDA_SET
}  // namespace avx2

void multiply(const SmallProduct& product) {
  if (has_avx512())
    avx512::multiply_all(product);
  else if (has_avx2())
    avx2::multiply_all(product);
  else
    multiply_plainly(product);
}
#else
void multiply(const SmallProduct& product) { multiply_plainly(product); }
#endif

}  // namespace ronda::onednn
