#pragma once
#include <cstddef>
#include <cstring>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace ronda {

/// Writes 16 floats with non-temporal stores, for data that is not read soon: the cache line is neither read from
/// memory first nor kept in a cache. Both pointers are 64-byte aligned. Other threads see the floats after
/// `finish_past_caches` and a synchronisation.
[[gnu::always_inline]] inline void write_past_caches(float* to, const float* from) noexcept {
#if defined(__SSE__)
  for (std::size_t i = 0; i < 16; i += 4) _mm_stream_ps(to + i, _mm_load_ps(from + i));
#else
  std::memcpy(to, from, 16 * sizeof(float));
#endif
}

/// Orders this thread's non-temporal stores before its later stores.
inline void finish_past_caches() noexcept {
#if defined(__SSE__)
  _mm_sfence();
#endif
}

}  // namespace ronda
