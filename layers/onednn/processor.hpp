#pragma once

namespace ronda::onednn {

/// Whether this processor has AVX-512: 32 registers of 16 numbers. BMI and POPCNT, for bits, are asked for too.
[[nodiscard]] inline bool has_avx512() noexcept {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("bmi") != 0 &&
         __builtin_cpu_supports("popcnt") != 0;
#else
  return false;
#endif
}

/// Whether it has AVX2 with multiply-adds: 16 registers of 8 numbers. BMI and POPCNT likewise.
[[nodiscard]] inline bool has_avx2() noexcept {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
         __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("popcnt") != 0;
#else
  return false;
#endif
}

}  // namespace ronda::onednn
