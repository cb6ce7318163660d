#include <ronda/layers/onednn/processor.hpp>
#include <ronda/layers/onednn/winograd_kernels.hpp>

#include <dnnl.hpp>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ronda::onednn::winograd {

bool suits_processor() {
  const auto needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return has_avx512() && (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & needed) == needed;
}

#if defined(__x86_64__)
#define RONDA_AVX512 [[gnu::target("avx512f")]]
#define RONDA_AVX512_INLINE [[gnu::target("avx512f"), gnu::always_inline]] inline

namespace {

using Sixteen = __m512;

// Written out, as in panels.cpp.

/// Rows are tiles, depth is channels, which come in sixteens.
template <int vectors>
struct OfTiles {
  static constexpr int b_vector = vector, c_vector = spread;  ///< from sixteen columns to the next
  static constexpr std::int64_t unrolled = vector;
  static std::int64_t row(const Product& m) { return m.a_step; }
  static std::int64_t column(const Product&) { return 1; }
  static std::int64_t b_row(const Product&) { return vectors * vector; }
  static std::int64_t c_row(const Product& m) { return m.c_row; }
};
/// Rows are sixteen channels, depth is tiles.
template <int vectors>
struct OfChannels {
  static constexpr int b_vector = spread, c_vector = vector;
  static constexpr std::int64_t unrolled = 1;
  static std::int64_t row(const Product&) { return 1; }
  static std::int64_t column(const Product& m) { return m.a_step; }
  static std::int64_t b_row(const Product& m) { return m.b_row; }
  static std::int64_t c_row(const Product&) { return vectors * vector; }
};

template <int rows, int vectors, class Kind>
RONDA_AVX512_INLINE void multiply_tile(const Product& m, std::int64_t row) {
  const std::int64_t a_row = Kind::row(m), c_row = Kind::c_row(m);
  float* const c = m.c + row * c_row;
  Sixteen sum[rows][vectors];
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v)
      sum[r][v] = m.add ? _mm512_load_ps(c + r * c_row + v * Kind::c_vector) : _mm512_setzero_ps();
  const float *a = m.a + row * a_row, *b = m.b;
  const auto multiply_row = [&](std::int64_t k) __attribute__((always_inline, target("avx512f"))) {
    Sixteen row_of_b[vectors];
    for (int v = 0; v < vectors; ++v) row_of_b[v] = _mm512_load_ps(b + k * Kind::b_row(m) + v * Kind::b_vector);
    for (int r = 0; r < rows; ++r) {
      const Sixteen element = _mm512_set1_ps(a[r * a_row + k * Kind::column(m)]);
      for (int v = 0; v < vectors; ++v) sum[r][v] = _mm512_fmadd_ps(element, row_of_b[v], sum[r][v]);
    }
  };
  if constexpr (Kind::unrolled > 1) {
    for (std::int64_t k = 0; k < m.depth; k += vector, a += spread, b += vector * Kind::b_row(m)) {
      for (int r = 0; r < rows; ++r) __builtin_prefetch(a + r * a_row + vector);  // the next element's
#pragma GCC unroll 4
      for (int i = 0; i < vector; ++i) multiply_row(i);
    }
  } else {
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < m.depth; ++k, a += Kind::column(m), b += Kind::b_row(m)) multiply_row(0);
  }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) _mm512_store_ps(c + r * c_row + v * Kind::c_vector, sum[r][v]);
}

template <int rows, int vectors, class Kind>
RONDA_AVX512 void multiply_rows(const Product& m) {
  std::int64_t row = 0;
  for (; row + rows <= m.rows; row += rows) multiply_tile<rows, vectors, Kind>(m, row);
  for (; row + 4 <= m.rows; row += 4) multiply_tile<4, vectors, Kind>(m, row);
  for (; row < m.rows; ++row) multiply_tile<1, vectors, Kind>(m, row);
}

}  // namespace

void multiply_tiles(const Product& m, std::int64_t vectors) {
  switch (vectors) {
    case 4: return multiply_rows<6, 4, OfTiles<4>>(m);
    case 3: return multiply_rows<8, 3, OfTiles<3>>(m);
    case 2: return multiply_rows<12, 2, OfTiles<2>>(m);
    default: return multiply_rows<16, 1, OfTiles<1>>(m);
  }
}

void multiply_channels(const Product& m, std::int64_t vectors) {
  switch (vectors) {
    case 4: return multiply_rows<4, 4, OfChannels<4>>(m);
    case 3: return multiply_rows<8, 3, OfChannels<3>>(m);
    case 2: return multiply_rows<8, 2, OfChannels<2>>(m);
    default: return multiply_rows<16, 1, OfChannels<1>>(m);
  }
}
#else
void multiply_tiles(const Product&, std::int64_t) {}
void multiply_channels(const Product&, std::int64_t) {}
#endif

}  // namespace ronda::onednn::winograd
