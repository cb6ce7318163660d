#pragma once
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstdint>

// A vector of numbers and what is done with it, by the same names for AVX-512 and for AVX2. A function has the
// instructions of one set, and a template cannot choose them; so loops in these words stand in a file that is included
// once in each of the namespaces (winograd_loops.hpp), where RONDA_SET is the set, and RONDA_LOOP marks functions.

#define RONDA_AVX512_SET "avx512f,avx512dq,avx512bw,avx512vl,bmi,popcnt"
#define RONDA_AVX2_SET "avx2,fma,bmi,popcnt"
#define RONDA_LOOP [[gnu::target(RONDA_SET)]]
#define RONDA_LOOP_INLINE [[gnu::target(RONDA_SET), gnu::always_inline]] inline
#define RONDA_LOOP_LAMBDA __attribute__((always_inline, target(RONDA_SET)))
#define RONDA_WITH_AVX512 gnu::target(RONDA_AVX512_SET)
#define RONDA_WITH_AVX2 gnu::target(RONDA_AVX2_SET)

namespace ronda::onednn::avx512 {

#define RONDA_WORD [[RONDA_WITH_AVX512, gnu::always_inline]] inline

using Vector = __m512;
constexpr std::int64_t lanes = 16;

/// Whether a vector is there: all of its numbers, or none.
using There = std::uint16_t;
constexpr There is_there = 0xffff;

RONDA_WORD Vector load(const float* from) { return _mm512_load_ps(from); }
RONDA_WORD Vector load_anywhere(const float* from) { return _mm512_loadu_ps(from); }
/// Lanes outside `there` are 0.
RONDA_WORD Vector load_if(There there, const float* from) { return _mm512_maskz_load_ps(there, from); }
RONDA_WORD void store(float* to, Vector x) { _mm512_store_ps(to, x); }
RONDA_WORD void store_anywhere(float* to, Vector x) { _mm512_storeu_ps(to, x); }
RONDA_WORD Vector all(float x) { return _mm512_set1_ps(x); }
RONDA_WORD Vector zeros() { return _mm512_setzero_ps(); }
/// Whether all lanes are 0.
RONDA_WORD bool are_zero(Vector x) { return _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_UQ) == 0; }
RONDA_WORD Vector plus(Vector x, Vector y) { return _mm512_add_ps(x, y); }
RONDA_WORD Vector minus(Vector x, Vector y) { return _mm512_sub_ps(x, y); }
RONDA_WORD Vector times(Vector x, Vector y) { return _mm512_mul_ps(x, y); }
RONDA_WORD Vector times(float x, Vector y) { return times(all(x), y); }
RONDA_WORD Vector add_product(Vector x, Vector y, Vector sum) { return _mm512_fmadd_ps(x, y, sum); }
RONDA_WORD Vector add_product(float x, Vector y, Vector sum) { return add_product(all(x), y, sum); }
/// As `ronda::rectified`: the second is given where one is NaN. (With a mask, since GCC 12 warns of it without.)
RONDA_WORD Vector rectified(Vector x) { return _mm512_mask_max_ps(x, 0xffff, _mm512_setzero_ps(), x); }

/// The maximum of a window's places for a vector of channels, and where it is: of equals the first, of NaNs the last.
struct WindowMaximum {
  Vector best;
  __m128i where = _mm_setzero_si128();

  [[RONDA_WITH_AVX512, gnu::always_inline]] void take(Vector y, int place) {
    const auto greater =
        static_cast<__mmask16>(_mm512_cmp_ps_mask(best, y, _CMP_LT_OQ) | _mm512_cmp_ps_mask(y, y, _CMP_UNORD_Q));
    best = _mm512_mask_mov_ps(best, greater, y);
    where = _mm_mask_mov_epi8(where, greater, _mm_set1_epi8(static_cast<char>(place)));
  }
  /// A byte for each channel.
  [[RONDA_WITH_AVX512, gnu::always_inline]] void store_places(std::uint8_t* to) const {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), where);
  }
};

#undef RONDA_WORD

}  // namespace ronda::onednn::avx512

namespace ronda::onednn::avx2 {

#define RONDA_WORD [[RONDA_WITH_AVX2, gnu::always_inline]] inline

using Vector = __m256;
constexpr std::int64_t lanes = 8;

using There = std::int32_t;
constexpr There is_there = -1;

RONDA_WORD Vector load(const float* from) { return _mm256_load_ps(from); }
RONDA_WORD Vector load_anywhere(const float* from) { return _mm256_loadu_ps(from); }
RONDA_WORD Vector load_if(There there, const float* from) { return _mm256_maskload_ps(from, _mm256_set1_epi32(there)); }
RONDA_WORD void store(float* to, Vector x) { _mm256_store_ps(to, x); }
RONDA_WORD void store_anywhere(float* to, Vector x) { _mm256_storeu_ps(to, x); }
RONDA_WORD Vector all(float x) { return _mm256_set1_ps(x); }
RONDA_WORD Vector zeros() { return _mm256_setzero_ps(); }
RONDA_WORD bool are_zero(Vector x) {
  return _mm256_movemask_ps(_mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_NEQ_UQ)) == 0;
}
RONDA_WORD Vector plus(Vector x, Vector y) { return _mm256_add_ps(x, y); }
RONDA_WORD Vector minus(Vector x, Vector y) { return _mm256_sub_ps(x, y); }
RONDA_WORD Vector times(Vector x, Vector y) { return _mm256_mul_ps(x, y); }
RONDA_WORD Vector times(float x, Vector y) { return times(all(x), y); }
RONDA_WORD Vector add_product(Vector x, Vector y, Vector sum) { return _mm256_fmadd_ps(x, y, sum); }
RONDA_WORD Vector add_product(float x, Vector y, Vector sum) { return add_product(all(x), y, sum); }
RONDA_WORD Vector rectified(Vector x) { return _mm256_max_ps(_mm256_setzero_ps(), x); }

struct WindowMaximum {
  Vector best;
  __m256i where = _mm256_setzero_si256();

  [[RONDA_WITH_AVX2, gnu::always_inline]] void take(Vector y, int place) {
    const __m256 greater = _mm256_or_ps(_mm256_cmp_ps(best, y, _CMP_LT_OQ), _mm256_cmp_ps(y, y, _CMP_UNORD_Q));
    best = _mm256_blendv_ps(best, y, greater);
    where = _mm256_blendv_epi8(where, _mm256_set1_epi32(place), _mm256_castps_si256(greater));
  }
  [[RONDA_WITH_AVX2, gnu::always_inline]] void store_places(std::uint8_t* to) const {
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(where), _mm256_extracti128_si256(where, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
  }
};

#undef RONDA_WORD

}  // namespace ronda::onednn::avx2
#endif
