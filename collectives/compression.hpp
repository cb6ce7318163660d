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
  int4,       ///< an eighth of them, and so on
  two_bit,    ///< a fifteenth of them: each number is -s, 0 or s, of a scale s of its block; and so on
  automatic,  ///< bf16 between nodes, where that is expected to save a tenth of the time or more; else none
};
/// none, bf16, fp16, int8, int4, 2bit, auto. Throws InputError that lists them.
[[nodiscard]] Compression parse_compression(std::string_view name);
[[nodiscard]] std::string_view name_of(Compression compression) noexcept;
/// Whether what rounding loses is kept, in memory of as many numbers, and added in the next run: error feedback.
[[nodiscard]] constexpr bool keeps_lost(Compression compression) noexcept {
  return compression == Compression::int8 || compression == Compression::int4 || compression == Compression::two_bit;
}
/// What one rounding may take from a number at most, as a part of the largest in its block; of bf16 and fp16 of itself.
[[nodiscard]] constexpr double largest_loss(Compression compression) noexcept {
  switch (compression) {
    case Compression::bf16: return 0x1p-8;
    case Compression::fp16: return 0x1p-11;
    case Compression::int8: return 1 / 126.0;
    case Compression::int4: return 1 / 6.0;
    case Compression::two_bit: return 7 / 8.0;
    case Compression::none:
    case Compression::automatic: break;
  }
  return 0;
}

}  // namespace ronda
