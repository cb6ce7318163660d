#include <ronda/layers/onednn/patches.hpp>
#include <ronda/layers/onednn/processor.hpp>
#include <ronda/layers/onednn/vectors.hpp>

#include <array>

namespace ronda::onednn::patches {
namespace {

constexpr int across = 4, kernel = 3;  ///< of a patch, and of the kernel

}  // namespace

bool suit(const Windows& p) {
  const bool two_by_two =
      p.places == 4 && p.place_at[1] == 1 && p.place_at[2] == p.below && p.place_at[3] == p.below + 1;
  return two_by_two && p.rows == kernel && p.row == kernel && has_avx512();
}

std::size_t bytes_of(const Windows& p) {
  return static_cast<std::size_t>(p.height * p.width) * (vector * sizeof(float) + sizeof(std::int32_t));
}

#if defined(__x86_64__)
#define RONDA_PATCHES [[RONDA_WITH_AVX512]]
#define RONDA_PATCHES_INLINE [[RONDA_WITH_AVX512, gnu::always_inline]] inline

using namespace avx512;

namespace {

constexpr __mmask16 whole = 0xffff;  ///< since GCC 12 warns of some instructions without a mask

RONDA_PATCHES_INLINE Vector patch_at(const float* x, std::int64_t below) {
  const Vector first = _mm512_castps128_ps512(_mm_loadu_ps(x));
  const Vector two = _mm512_insertf32x4(first, _mm_loadu_ps(x + below), 1);
  const Vector three = _mm512_insertf32x4(two, _mm_loadu_ps(x + 2 * below), 2);
  return _mm512_insertf32x4(three, _mm_loadu_ps(x + 3 * below), 3);
}

/// Bᵀ d B: of four rows, then of four columns, the first less the third, the sum of the second and the third, the
/// third less the second, and the second less the fourth.
RONDA_PATCHES_INLINE Vector transform_patch(Vector d) {
  const Vector row_signs = _mm512_setr_ps(-1, -1, -1, -1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1, -1);
  const Vector column_signs = _mm512_setr_ps(-1, 1, -1, -1, -1, 1, -1, -1, -1, 1, -1, -1, -1, 1, -1, -1);
  const Vector rows = _mm512_fmadd_ps(_mm512_maskz_shuffle_f32x4(whole, d, d, _MM_SHUFFLE(3, 1, 2, 2)), row_signs,
                                      _mm512_maskz_shuffle_f32x4(whole, d, d, _MM_SHUFFLE(1, 2, 1, 0)));
  return _mm512_fmadd_ps(_mm512_maskz_permute_ps(whole, rows, _MM_SHUFFLE(3, 1, 2, 2)), column_signs,
                         _mm512_maskz_permute_ps(whole, rows, _MM_SHUFFLE(1, 2, 1, 0)));
}

/// G w
RONDA_PATCHES_INLINE void weight_line(const Vector (&w)[3], Vector (&to)[4]) {
  const Vector even = times(0.5F, plus(w[0], w[2])), odd = times(0.5F, w[1]);
  to[0] = w[0];
  to[1] = plus(even, odd);
  to[2] = minus(even, odd);
  to[3] = w[2];
}

}  // namespace

RONDA_PATCHES void transform_weights(const float* w, float* u) {
  Vector half[across][kernel];
  for (int j = 0; j < kernel; ++j) {
    Vector column[kernel], result[across];
    for (int i = 0; i < kernel; ++i) column[i] = load_anywhere(w + (i * kernel + j) * vector);
    weight_line(column, result);
    for (int i = 0; i < across; ++i) half[i][j] = result[i];
  }
  for (int i = 0; i < across; ++i) {
    Vector row[across];
    weight_line(half[i], row);
    for (int j = 0; j < across; ++j) store_anywhere(u + (i * across + j) * vector, row[j]);
  }
}

RONDA_PATCHES Cut cut(const Windows& p, const float* x, bool transformed, std::byte* memory) {
  auto* const numbers = reinterpret_cast<float*>(memory);
  Cut result{numbers, reinterpret_cast<std::int32_t*>(numbers + p.height * p.width * vector)};
  for (std::int64_t i = 0; i < p.height; ++i)
    for (std::int64_t j = 0; j < p.width; ++j) {
      const Vector patch = patch_at(x + i * p.window_down + j * p.window_right, p.below);
      // Written always, and overwritten by the next where it is all zeros, so that it is no branch.
      store(numbers + result.count * vector, transformed ? transform_patch(patch) : patch);
      result.windows[result.count] = static_cast<std::int32_t>(i * p.width + j);
      result.count += _mm512_cmp_ps_mask(patch, zeros(), _CMP_NEQ_UQ) != 0 ? 1 : 0;
    }
  return result;
}

RONDA_PATCHES void convolve_and_pool(const Windows& p, const Cut& transformed, const float* u, const float* bias,
                                     float* y, std::uint8_t* winners) {
  Vector taps[across][across];
#pragma GCC unroll 4
  for (int i = 0; i < across; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < across; ++j) taps[i][j] = load_anywhere(u + (i * across + j) * vector);
  const Vector more = load_anywhere(bias);
  const auto write = [&](std::int64_t window, const WindowMaximum& maximum)
      __attribute__((always_inline, target(RONDA_AVX512_SET))) {
    const Vector sum = plus(maximum.best, more);
    store_anywhere(y + window * p.lanes, p.relu ? rectified(sum) : sum);
    maximum.store_places(winners + window * p.lanes);
  };
  const WindowMaximum empty{zeros()};
  for (std::int64_t window = 0; window < p.height * p.width; ++window) write(window, empty);
  const float* d = transformed.numbers;
  for (std::int64_t patch = 0; patch < transformed.count; ++patch, d += vector) {
    Vector top[across], bottom[across];
#pragma GCC unroll 4
    for (int j = 0; j < across; ++j) {
      const Vector one = times(taps[1][j], all(d[across + j]));
      const Vector two = times(taps[2][j], all(d[2 * across + j]));
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

RONDA_PATCHES void add_gradients(const Windows& p, const Cut& patches, const float* dy, const std::uint8_t* winners,
                                 float* sums) {
  constexpr int taps = kernel * kernel;
  const __m128i corners = _mm_setr_epi8(0, 1, across, across + 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  Vector sum[taps];
#pragma GCC unroll 9
  for (int tap = 0; tap < taps; ++tap) sum[tap] = load_anywhere(sums + tap * vector);
  for (std::int64_t i = 0; i < patches.count; ++i) {
    const std::int64_t at = patches.windows[i] * p.lanes;
    const __m128i places = _mm_loadu_si128(reinterpret_cast<const __m128i*>(winners + at));
    const __m512i corner = _mm512_maskz_cvtepu8_epi32(whole, _mm_shuffle_epi8(corners, places));
    const Vector patch = load(patches.numbers + i * vector), gradient = load_anywhere(dy + at);
#pragma GCC unroll 9
    for (int tap = 0; tap < taps; ++tap) {
      const __m512i input = _mm512_add_epi32(corner, _mm512_set1_epi32(tap / kernel * across + tap % kernel));
      sum[tap] = _mm512_fmadd_ps(gradient, _mm512_maskz_permutexvar_ps(whole, input, patch), sum[tap]);
    }
  }
#pragma GCC unroll 9
  for (int tap = 0; tap < taps; ++tap) store_anywhere(sums + tap * vector, sum[tap]);
}
#else
void transform_weights(const float*, float*) {}
Cut cut(const Windows&, const float*, bool, std::byte*) { return {}; }
void convolve_and_pool(const Windows&, const Cut&, const float*, const float*, float*, std::uint8_t*) {}
void add_gradients(const Windows&, const Cut&, const float*, const std::uint8_t*, float*) {}
#endif

}  // namespace ronda::onednn::patches
