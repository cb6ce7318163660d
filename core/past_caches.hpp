#pragma once
#include <cstddef>
#include <cstring>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace ronda {

/// Writes 16 floats where they will not be read soon: memory is not read first for the line that they fill, nor does a
/// cache keep it. Both 64-byte aligned. Other threads see them after `finish_past_caches` and a synchronisation.
[[gnu::always_inline]] inline void write_past_caches(float* to, const float* from) noexcept {
#if defined(__SSE__)
  for (std::size_t i = 0; i < 16; i += 4) _mm_stream_ps(to + i, _mm_load_ps(from + i));
#else
  std::memcpy(to, from, 16 * sizeof(float));
#endif
}

/// What this thread wrote past the caches comes before what it writes from now on.
inline void finish_past_caches() noexcept {
#if defined(__SSE__)
  _mm_sfence();
#endif
}

}  // namespace ronda
