#pragma once

namespace ronda::onednn {

/// Whether this processor has AVX-512: 32 registers of 16 numbers. And what counts bits, as all that have it do.
[[nodiscard]] inline bool has_avx512() noexcept {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("bmi") != 0 &&
         __builtin_cpu_supports("popcnt") != 0;
#else
  return false;
#endif
}

/// Whether it has AVX2 with multiply-adds: 16 registers of 8 numbers.
[[nodiscard]] inline bool has_avx2() noexcept {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
         __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("popcnt") != 0;
#else
  return false;
#endif
}

}  // namespace ronda::onednn
