#pragma once

namespace ronda::onednn {

// What this processor has, and ONEDNN_MAX_CPU_ISA leaves to oneDNN and to our loops. Asked once: the variable counts as
// it is at a program's first layer.

/// AVX-512: 32 registers of 16 numbers. BMI and POPCNT, for bits, are asked for too.
[[nodiscard]] bool has_avx512() noexcept;
/// AVX2 with multiply-adds: 16 registers of 8 numbers. BMI and POPCNT likewise.
[[nodiscard]] bool has_avx2() noexcept;

}  // namespace ronda::onednn
