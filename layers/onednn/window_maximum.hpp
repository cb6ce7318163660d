#pragma once
#if defined(__x86_64__)
#include <immintrin.h>

namespace ronda::onednn {

/// The maximum of a window's places for sixteen channels, and where it is: of equals the first, of NaNs the last. For
/// loops in AVX-512 alone.
struct WindowMaximum {
  __m512 best;
  __m128i where = _mm_setzero_si128();

  [[gnu::target("avx512f,avx512dq,avx512bw,avx512vl"), gnu::always_inline]] void take(__m512 y, int place) {
    const auto greater =
        static_cast<__mmask16>(_mm512_cmp_ps_mask(best, y, _CMP_LT_OQ) | _mm512_cmp_ps_mask(y, y, _CMP_UNORD_Q));
    best = _mm512_mask_mov_ps(best, greater, y);
    where = _mm_mask_mov_epi8(where, greater, _mm_set1_epi8(static_cast<char>(place)));
  }
};

/// As `ronda::rectified`: the second is given where one is NaN. (With a mask, since GCC 12 warns of it without.)
[[gnu::target("avx512f"), gnu::always_inline]] inline __m512 rectified_lanes(__m512 x) {
  return _mm512_mask_max_ps(x, 0xffff, _mm512_setzero_ps(), x);
}

}  // namespace ronda::onednn
#endif
