#pragma once
#include <cstdint>
#include <string_view>

namespace ronda {

/// What float32 numbers are while they travel between ranks. Wherever they stay in memory they are float32.
enum class Compression : std::uint8_t {
  none,
  bf16,       ///< half the bytes; the range of float32, 8 bits of precision
  fp16,       ///< half the bytes; 11 bits of precision, but nothing beyond 65504, and less of it below 6e-5
  int8,       ///< a quarter of the bytes; what rounding loses is kept and goes with the next run
  automatic,  ///< bf16 between nodes, where that is expected to save a tenth of the time or more; else none
};
/// none, bf16, fp16, int8, auto. Throws InputError that lists them.
[[nodiscard]] Compression parse_compression(std::string_view name);
[[nodiscard]] std::string_view name_of(Compression compression) noexcept;

}  // namespace ronda
