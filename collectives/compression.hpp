#pragma once
#include <cstdint>
#include <string_view>

namespace ronda {

/// Format of float32 numbers in messages between ranks. In memory they are always float32.
enum class Compression : std::uint8_t {
  none,
  bf16,       ///< half the bytes; range of float32, 8 bits of precision
  fp16,       ///< half the bytes; 11 bits of precision, less below 6e-5; largest number 65504
  int8,       ///< a quarter of the bytes; rounding errors are added in the next run (error feedback)
  int4,       ///< an eighth of the bytes; error feedback
  two_bit,    ///< a fifteenth of the bytes: -s, 0 or s, with a scale s per block; error feedback
  automatic,  ///< bf16 between nodes if predicted to save at least a tenth of the time; otherwise none
};
/// Parses none, bf16, fp16, int8, int4, 2bit or auto. Throws InputError, which lists these names.
[[nodiscard]] Compression parse_compression(std::string_view name);
[[nodiscard]] std::string_view name_of(Compression compression) noexcept;
/// Whether this compression uses error feedback: rounding errors are stored, one per number, and added in the next run.
[[nodiscard]] constexpr bool keeps_lost(Compression compression) noexcept {
  return compression == Compression::int8 || compression == Compression::int4 || compression == Compression::two_bit;
}
/// Largest rounding error: relative to the number itself for bf16 and fp16, to the largest number in its block for
/// int8, int4 and 2bit.
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
