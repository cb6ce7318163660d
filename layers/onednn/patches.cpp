#include <ronda/layers/onednn/patches.hpp>
#include <ronda/layers/onednn/window_maximum.hpp>
#include <ronda/layers/onednn/winograd_kernels.hpp>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <array>

namespace ronda::onednn::patches {
namespace {

constexpr int across = 4, kernel = 3;  ///< of a patch, and of the kernel

}  // namespace

bool suit(const Windows& p) {
  const bool two_by_two =
      p.places == 4 && p.place_at[1] == 1 && p.place_at[2] == p.below && p.place_at[3] == p.below + 1;
  return two_by_two && p.rows == kernel && p.row == kernel && winograd::suits_processor();
}

std::size_t bytes_of(const Windows& p) {
  return static_cast<std::size_t>(p.height * p.width) * (vector * sizeof(float) + sizeof(std::int32_t));
}

#if defined(__x86_64__)
#define RONDA_AVX512 [[gnu::target("avx512f,avx512dq,avx512bw,avx512vl")]]
#define RONDA_AVX512_INLINE [[gnu::target("avx512f,avx512dq,avx512bw,avx512vl"), gnu::always_inline]] inline

namespace {

using Sixteen = __m512;
constexpr __mmask16 whole = 0xffff;  ///< since GCC 12 warns of some instructions without a mask

RONDA_AVX512_INLINE Sixteen all(float x) { return _mm512_set1_ps(x); }
RONDA_AVX512_INLINE Sixteen plus(Sixteen x, Sixteen y) { return _mm512_add_ps(x, y); }
RONDA_AVX512_INLINE Sixteen minus(Sixteen x, Sixteen y) { return _mm512_sub_ps(x, y); }

RONDA_AVX512_INLINE Sixteen patch_at(const float* x, std::int64_t below) {
  const Sixteen first = _mm512_castps128_ps512(_mm_loadu_ps(x));
  const Sixteen two = _mm512_insertf32x4(first, _mm_loadu_ps(x + below), 1);
  const Sixteen three = _mm512_insertf32x4(two, _mm_loadu_ps(x + 2 * below), 2);
  return _mm512_insertf32x4(three, _mm_loadu_ps(x + 3 * below), 3);
}

/// Bᵀ d B: of four rows, then of four columns, the first less the third, the sum of the second and the third, the
/// third less the second, and the second less the fourth.
RONDA_AVX512_INLINE Sixteen transform_patch(Sixteen d) {
  const Sixteen row_signs = _mm512_setr_ps(-1, -1, -1, -1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1, -1);
  const Sixteen column_signs = _mm512_setr_ps(-1, 1, -1, -1, -1, 1, -1, -1, -1, 1, -1, -1, -1, 1, -1, -1);
  const Sixteen rows = _mm512_fmadd_ps(_mm512_maskz_shuffle_f32x4(whole, d, d, _MM_SHUFFLE(3, 1, 2, 2)), row_signs,
                                       _mm512_maskz_shuffle_f32x4(whole, d, d, _MM_SHUFFLE(1, 2, 1, 0)));
  return _mm512_fmadd_ps(_mm512_maskz_permute_ps(whole, rows, _MM_SHUFFLE(3, 1, 2, 2)), column_signs,
                         _mm512_maskz_permute_ps(whole, rows, _MM_SHUFFLE(1, 2, 1, 0)));
}

/// G w
RONDA_AVX512_INLINE void weight_line(const Sixteen (&w)[3], Sixteen (&to)[4]) {
  const Sixteen even = _mm512_mul_ps(all(0.5F), plus(w[0], w[2])), odd = _mm512_mul_ps(all(0.5F), w[1]);
  to[0] = w[0];
  to[1] = plus(even, odd);
  to[2] = minus(even, odd);
  to[3] = w[2];
}

}  // namespace

RONDA_AVX512 void transform_weights(const float* w, float* u) {
  Sixteen half[across][kernel];
  for (int j = 0; j < kernel; ++j) {
    Sixteen column[kernel], result[across];
    for (int i = 0; i < kernel; ++i) column[i] = _mm512_loadu_ps(w + (i * kernel + j) * vector);
    weight_line(column, result);
    for (int i = 0; i < across; ++i) half[i][j] = result[i];
  }
  for (int i = 0; i < across; ++i) {
    Sixteen row[across];
    weight_line(half[i], row);
    for (int j = 0; j < across; ++j) _mm512_storeu_ps(u + (i * across + j) * vector, row[j]);
  }
}

RONDA_AVX512 Cut cut(const Windows& p, const float* x, bool transformed, std::byte* memory) {
  auto* const numbers = reinterpret_cast<float*>(memory);
  Cut result{numbers, reinterpret_cast<std::int32_t*>(numbers + p.height * p.width * vector)};
  for (std::int64_t i = 0; i < p.height; ++i)
    for (std::int64_t j = 0; j < p.width; ++j) {
      const Sixteen patch = patch_at(x + i * p.window_down + j * p.window_right, p.below);
      // Written always, and overwritten by the next where it is all zeros, so that it is no branch.
      _mm512_store_ps(numbers + result.count * vector, transformed ? transform_patch(patch) : patch);
      result.windows[result.count] = static_cast<std::int32_t>(i * p.width + j);
      result.count += _mm512_cmp_ps_mask(patch, _mm512_setzero_ps(), _CMP_NEQ_UQ) != 0 ? 1 : 0;
    }
  return result;
}

RONDA_AVX512 void convolve_and_pool(const Windows& p, const Cut& transformed, const float* u, const float* bias,
                                    float* y, std::uint8_t* winners) {
  Sixteen taps[across][across];
#pragma GCC unroll 4
  for (int i = 0; i < across; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < across; ++j) taps[i][j] = _mm512_loadu_ps(u + (i * across + j) * vector);
  const Sixteen more = _mm512_loadu_ps(bias);
  const auto write = [&](std::int64_t window, const WindowMaximum& maximum)
      __attribute__((always_inline, target("avx512f,avx512dq,avx512bw,avx512vl"))) {
    const Sixteen sum = plus(maximum.best, more);
    _mm512_storeu_ps(y + window * p.lanes, p.relu ? rectified_lanes(sum) : sum);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(winners + window * p.lanes), maximum.where);
  };
  const WindowMaximum empty{_mm512_setzero_ps()};
  for (std::int64_t window = 0; window < p.height * p.width; ++window) write(window, empty);
  const float* d = transformed.numbers;
  for (std::int64_t patch = 0; patch < transformed.count; ++patch, d += vector) {
    Sixteen top[across], bottom[across];
#pragma GCC unroll 4
    for (int j = 0; j < across; ++j) {
      const Sixteen one = _mm512_mul_ps(taps[1][j], all(d[across + j]));
      const Sixteen two = _mm512_mul_ps(taps[2][j], all(d[2 * across + j]));
      top[j] = _mm512_fmadd_ps(taps[0][j], all(d[j]), plus(one, two));
      bottom[j] = _mm512_fnmadd_ps(taps[3][j], all(d[3 * across + j]), minus(one, two));
    }
    WindowMaximum maximum{plus(plus(top[0], top[1]), top[2])};
    maximum.take(minus(minus(top[1], top[2]), top[3]), 1);
    maximum.take(plus(plus(bottom[0], bottom[1]), bottom[2]), 2);
    maximum.take(minus(minus(bottom[1], bottom[2]), bottom[3]), 3);
    write(transformed.windows[patch], maximum);
  }
}

RONDA_AVX512 void add_gradients(const Windows& p, const Cut& patches, const float* dy, const std::uint8_t* winners,
                                float* sums) {
  constexpr int taps = kernel * kernel;
  const __m128i corners = _mm_setr_epi8(0, 1, across, across + 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  Sixteen sum[taps];
#pragma GCC unroll 9
  for (int tap = 0; tap < taps; ++tap) sum[tap] = _mm512_loadu_ps(sums + tap * vector);
  for (std::int64_t i = 0; i < patches.count; ++i) {
    const std::int64_t at = patches.windows[i] * p.lanes;
    const __m128i places = _mm_loadu_si128(reinterpret_cast<const __m128i*>(winners + at));
    const __m512i corner = _mm512_maskz_cvtepu8_epi32(whole, _mm_shuffle_epi8(corners, places));
    const Sixteen patch = _mm512_load_ps(patches.numbers + i * vector), gradient = _mm512_loadu_ps(dy + at);
#pragma GCC unroll 9
    for (int tap = 0; tap < taps; ++tap) {
      const __m512i input = _mm512_add_epi32(corner, _mm512_set1_epi32(tap / kernel * across + tap % kernel));
      sum[tap] = _mm512_fmadd_ps(gradient, _mm512_maskz_permutexvar_ps(whole, input, patch), sum[tap]);
    }
  }
#pragma GCC unroll 9
  for (int tap = 0; tap < taps; ++tap) _mm512_storeu_ps(sums + tap * vector, sum[tap]);
}
#else
void transform_weights(const float*, float*) {}
Cut cut(const Windows&, const float*, bool, std::byte*) { return {}; }
void convolve_and_pool(const Windows&, const Cut&, const float*, const float*, float*, std::uint8_t*) {}
void add_gradients(const Windows&, const Cut&, const float*, const std::uint8_t*, float*) {}
#endif

}  // namespace ronda::onednn::patches
