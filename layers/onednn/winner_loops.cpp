#include <ronda/layers/onednn/images.hpp>
#include <ronda/layers/onednn/processor.hpp>
#include <ronda/layers/onednn/vectors.hpp>
#include <ronda/layers/onednn/winner_kernels.hpp>

#include <algorithm>
#include <bit>

namespace ronda::onednn::winner_loops {
namespace {

constexpr int kernel = 3, taps = kernel * kernel;
constexpr std::int64_t block_taps = taps * vector;  ///< floats of the weights of an output channel and sixteen inputs
constexpr std::int64_t word = 64;                   ///< channels in a word of marks

std::int64_t words_of(const Geometry& g) { return (g.outputs + word - 1) / word; }

}  // namespace

std::int64_t scratch_bytes(const Geometry& g) {
  return g.places * words_of(g) * static_cast<std::int64_t>(sizeof(std::uint64_t)) +
         g.outputs * static_cast<std::int64_t>(sizeof(float));
}

#if defined(__x86_64__)
namespace avx512 {

using namespace onednn::avx512;

#define RONDA_SET RONDA_AVX512_SET

namespace {

constexpr int at_once = 2;  ///< vectors of input channels, whose sums take 18 of 32 registers

/// For each channel a bit for each of up to 32 windows: whether the gradient there is not 0.
RONDA_LOOP_INLINE void mark_windows(const float* dy, std::int64_t step, std::int64_t count, std::uint32_t* marks) {
  __m512i bits = _mm512_setzero_si512();
  for (std::int64_t window = 0; window < count; ++window) {
    const __mmask16 there = _mm512_cmp_ps_mask(load_anywhere(dy + window * step), zeros(), _CMP_NEQ_UQ);
    bits = _mm512_mask_or_epi32(bits, there, bits, _mm512_set1_epi32(static_cast<int>(1U << window)));
  }
  _mm512_store_si512(marks, bits);
}

/// Of a window: where a vector of channels has its winners.
class Winners {
 public:
  RONDA_LOOP_INLINE Winners(const float* dy, const std::uint8_t* winners)
      : places_(_mm_loadu_si128(reinterpret_cast<const __m128i*>(winners))),
        there_(_mm512_cmp_ps_mask(load_anywhere(dy), zeros(), _CMP_NEQ_UQ)) {}
  /// A bit for each channel: whether it is there, with a gradient that is not 0.
  RONDA_LOOP_INLINE std::uint32_t at(int place) const {
    return _mm_mask_cmpeq_epi8_mask(there_, places_, _mm_set1_epi8(static_cast<char>(place)));
  }

 private:
  __m128i places_;
  __mmask16 there_;
};

}  // namespace

#include <ronda/layers/onednn/winner_loops.hpp>
#undef RONDA_SET

}  // namespace avx512

namespace avx2 {

using namespace onednn::avx2;

#define RONDA_SET RONDA_AVX2_SET

namespace {

constexpr int at_once = 1;  ///< sums in 9 of 16 registers

RONDA_LOOP_INLINE void mark_windows(const float* dy, std::int64_t step, std::int64_t count, std::uint32_t* marks) {
  __m256i bits = _mm256_setzero_si256();
  for (std::int64_t window = 0; window < count; ++window) {
    const __m256 there = _mm256_cmp_ps(load_anywhere(dy + window * step), zeros(), _CMP_NEQ_UQ);
    const __m256i bit = _mm256_set1_epi32(static_cast<int>(1U << window));
    bits = _mm256_or_si256(bits, _mm256_and_si256(_mm256_castps_si256(there), bit));
  }
  _mm256_store_si256(reinterpret_cast<__m256i*>(marks), bits);
}

class Winners {
 public:
  RONDA_LOOP_INLINE Winners(const float* dy, const std::uint8_t* winners)
      : places_(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(winners))),
        there_(_mm256_movemask_ps(_mm256_cmp_ps(load_anywhere(dy), zeros(), _CMP_NEQ_UQ))) {}
  RONDA_LOOP_INLINE std::uint32_t at(int place) const {
    const __m128i here = _mm_cmpeq_epi8(places_, _mm_set1_epi8(static_cast<char>(place)));
    return static_cast<std::uint32_t>(_mm_movemask_epi8(here) & there_);
  }

 private:
  __m128i places_;
  int there_;
};

}  // namespace

#include <ronda/layers/onednn/winner_loops.hpp>
#undef RONDA_SET

}  // namespace avx2

namespace {

constexpr Loops by_avx512{avx512::lanes, avx512::add_weights, avx512::add_data},
    by_avx2{avx2::lanes, avx2::add_weights, avx2::add_data};

}  // namespace

const Loops* loops_here() { return has_avx512() ? &by_avx512 : has_avx2() ? &by_avx2 : nullptr; }
#else
const Loops* loops_here() { return nullptr; }
#endif

}  // namespace ronda::onednn::winner_loops
