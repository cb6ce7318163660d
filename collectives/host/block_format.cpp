#include <ronda/collectives/host/block_format.hpp>
#include <ronda/core/multiversion.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace ronda {
namespace {

constexpr std::size_t block_size = granule_of(Compression::int8);
using Floats = std::array<float, block_size>;
using Bytes = std::array<std::int8_t, block_size>;

// ---- numbers with what earlier roundings lost -----------------------------------------------------------------------

/// Blocks below are zero on the wire: the inverse of their scale could not be had.
constexpr float smallest_magnitude = 1e-30F;
constexpr std::uint32_t infinity = 0x7f800000U;  ///< magnitudes of finite numbers are less

/// What is beyond the largest number, though `values` is not, becomes that. Returns the largest magnitude.
std::uint32_t saturate(const float* values, Floats& sums) noexcept {
  constexpr float most = std::numeric_limits<float>::max();
  std::uint32_t top = 0;
  for (std::size_t i = 0; i < block_size; ++i) {
    if (std::isfinite(values[i])) sums[i] = std::clamp(sums[i], -most, most);
    top = std::max(top, std::bit_cast<std::uint32_t>(sums[i]) & 0x7fffffffU);
  }
  return top;
}

/// Of a block.
struct Magnitude {
  bool finite;    ///< all of it
  bool some;      ///< and not so small that it is zero on the wire
  float largest;  ///< where it is finite
};

/// `exact` becomes the sums that are to be sent; zeros, where one is not finite: nothing of these is to come back.
[[gnu::always_inline]] inline Magnitude add_up(const float* __restrict values, const float* __restrict residual,
                                               Floats& exact) {
  std::uint32_t top = 0;  // magnitudes are in the order of their bits
  for (std::size_t i = 0; i < block_size; ++i) {
    exact[i] = values[i] + residual[i];
    top = std::max(top, std::bit_cast<std::uint32_t>(exact[i]) & 0x7fffffffU);
  }
  if (top >= infinity) top = saturate(values, exact);
  const bool finite = top < infinity;
  if (!finite) exact.fill(0.0F);
  const auto largest = std::bit_cast<float>(top);
  return {finite, finite && largest >= smallest_magnitude, largest};
}

/// What a block that is not finite has instead of a scale.
[[gnu::always_inline]] inline float scale_or_nan(const Magnitude& magnitude, float scale) {
  return magnitude.finite ? scale : std::numeric_limits<float>::quiet_NaN();
}

// ---- rounding at random ---------------------------------------------------------------------------------------------

/// 32 bits that look random, for each i (Wellons, "Prospecting for hash functions", 2018: lowbias32).
[[gnu::always_inline]] inline std::uint32_t mixed(std::uint32_t i) noexcept {
  i = (i ^ (i >> 16)) * 0x7feb352dU;
  i = (i ^ (i >> 15)) * 0x846ca68bU;
  return i ^ (i >> 16);
}

/// In fixed point, with 16 bits behind the point, to which as many random ones are added before they are cut off.
[[gnu::always_inline]] inline std::int32_t rounded(float fixed, std::uint32_t random) noexcept {
  return (static_cast<std::int32_t>(fixed) + static_cast<std::int32_t>(random)) >> 16;
}

/// To whole numbers from -side to side. Returns the scale. `residual` becomes what is lost.
template <int side>
[[gnu::always_inline]] inline float quantize_at_random(const float* __restrict values, float* __restrict residual,
                                                       Noise noise, std::int8_t* __restrict quanta) {
  constexpr float most_quanta = side - 0x1p-10F;          // a little less, so that no rounding takes the largest beyond
  constexpr float largest_scale = 0x1.fffffp127F / side;  // side times it is finite too
  alignas(64) Floats exact;
  const Magnitude magnitude = add_up(values, residual, exact);
  const float scale = magnitude.some ? std::min(magnitude.largest / most_quanta, largest_scale) : 0.0F;
  const float to_fixed = magnitude.some ? most_quanta * 65536.0F / magnitude.largest : 0.0F;
  const auto seed = static_cast<std::uint32_t>(noise.key());
  constexpr std::size_t half = block_size / 2;
  alignas(64) std::array<std::int32_t, block_size> wide;
  for (std::size_t i = 0; i < half; ++i) {  // 32 random bits do for two
    const std::uint32_t random = mixed(seed + static_cast<std::uint32_t>(i) * 0x9e3779b9U);
    wide[i] = rounded(exact[i] * to_fixed, random & 0xffffU);
    wide[i + half] = rounded(exact[i + half] * to_fixed, random >> 16);
  }
  for (std::size_t i = 0; i < block_size; ++i) {
    quanta[i] = static_cast<std::int8_t>(wide[i]);
    residual[i] = exact[i] - static_cast<float>(wide[i]) * scale;
  }
  return scale_or_nan(magnitude, scale);
}

RONDA_MULTIVERSION float quantize_int8(const float* __restrict values, float* __restrict residual, Noise noise,
                                       std::int8_t* __restrict quanta) {
  return quantize_at_random<127>(values, residual, noise, quanta);
}

RONDA_MULTIVERSION float quantize_int4(const float* __restrict values, float* __restrict residual, Noise noise,
                                       std::int8_t* __restrict quanta) {
  return quantize_at_random<7>(values, residual, noise, quanta);
}

// ---- three values ---------------------------------------------------------------------------------------------------

/// What is larger than one of these is sent; the largest magnitude in a block is 2^16.
constexpr std::array<std::int32_t, 3> thresholds{1 << 15, 1 << 14, 1 << 13};

/// Of the numbers beyond a threshold, as whole numbers, whose sum is the same in any order.
struct Beyond {
  std::int32_t threshold, count, sum;
  /// How much of the block's sum of squares is sent with their mean.
  [[nodiscard]] double energy() const noexcept { return count == 0 ? 0 : static_cast<double>(sum) * sum / count; }
};

RONDA_MULTIVERSION float quantize_2bit(const float* __restrict values, float* __restrict residual, Noise /*noise*/,
                                       std::int8_t* __restrict quanta) {
  alignas(64) Floats exact;
  alignas(64) std::array<std::int32_t, block_size> sizes;
  const Magnitude magnitude = add_up(values, residual, exact);
  const float to_fixed = magnitude.some ? 65536.0F / magnitude.largest : 0.0F;
  for (std::size_t i = 0; i < block_size; ++i) sizes[i] = static_cast<std::int32_t>(std::abs(exact[i]) * to_fixed);
  Beyond best{};
  for (const std::int32_t threshold : thresholds) {
    Beyond one{threshold, 0, 0};
    for (std::size_t i = 0; i < block_size; ++i) {
      one.count += sizes[i] > threshold ? 1 : 0;
      one.sum += sizes[i] > threshold ? sizes[i] : 0;
    }
    if (one.energy() > best.energy()) best = one;
  }
  const float mean = static_cast<float>(best.sum) / static_cast<float>(std::max(best.count, 1));
  const float scale = magnitude.some ? mean * (magnitude.largest * 0x1p-16F) : 0.0F;
  for (std::size_t i = 0; i < block_size; ++i) {
    const std::int32_t sign = exact[i] < 0.0F ? -1 : 1, quantum = sizes[i] > best.threshold ? sign : 0;
    quanta[i] = static_cast<std::int8_t>(quantum);
    residual[i] = exact[i] - static_cast<float>(quantum) * scale;
  }
  return scale_or_nan(magnitude, scale);
}

// ---- bytes ----------------------------------------------------------------------------------------------------------

constexpr std::size_t bytes_of(std::size_t count, std::size_t a_byte) noexcept { return (count + a_byte - 1) / a_byte; }

/// Behind `count` quanta there are zeros, up to a whole block.
template <int bits>
[[gnu::always_inline]] inline void pack(const std::int8_t* __restrict quanta, std::size_t count,
                                        std::uint8_t* __restrict bytes) {
  constexpr int a_byte = 8 / bits, mask = (1 << bits) - 1;
  const std::size_t n = bytes_of(count, a_byte);
  for (std::size_t j = 0; j < n; ++j) {
    int byte = 0;
    for (int k = 0; k < a_byte; ++k) byte |= (quanta[static_cast<std::size_t>(k) * n + j] & mask) << (k * bits);
    bytes[j] = static_cast<std::uint8_t>(byte);
  }
}

template <int bits, bool adds>
[[gnu::always_inline]] inline void unpack(const std::uint8_t* __restrict bytes, float scale, float* __restrict values,
                                          std::size_t count) {
  constexpr int a_byte = 8 / bits;
  const std::size_t n = bytes_of(count, a_byte);
  for (int k = 0; k < a_byte; ++k) {
    const std::size_t first = std::min(static_cast<std::size_t>(k) * n, count), here = std::min(n, count - first);
    for (std::size_t j = 0; j < here; ++j) {
      const auto top = static_cast<std::int8_t>(static_cast<std::uint8_t>(bytes[j] << (8 - bits - k * bits)));
      const float value = static_cast<float>(top >> (8 - bits)) * scale;
      values[first + j] = adds ? values[first + j] + value : value;
    }
  }
}

// NOLINTBEGIN(bugprone-macro-parentheses)
#define RONDA_BYTES(name, bits)                                                                                      \
  RONDA_MULTIVERSION void pack_##name(const std::int8_t* __restrict quanta, std::size_t count,                       \
                                      std::uint8_t* __restrict bytes) {                                              \
    pack<bits>(quanta, count, bytes);                                                                                \
  }                                                                                                                  \
  RONDA_MULTIVERSION void unpack_##name(const std::uint8_t* __restrict bytes, float scale, float* __restrict values, \
                                        std::size_t count) {                                                         \
    unpack<bits, false>(bytes, scale, values, count);                                                                \
  }                                                                                                                  \
  RONDA_MULTIVERSION void unpack_and_add_##name(const std::uint8_t* __restrict bytes, float scale,                   \
                                                float* __restrict values, std::size_t count) {                       \
    unpack<bits, true>(bytes, scale, values, count);                                                                 \
  }
RONDA_BYTES(int8, 8)
RONDA_BYTES(int4, 4)
RONDA_BYTES(2bit, 2)
#undef RONDA_BYTES
// NOLINTEND(bugprone-macro-parentheses)

// ---- blocks ---------------------------------------------------------------------------------------------------------

struct Format {
  float (*quantize)(const float*, float*, Noise, std::int8_t*);
  void (*pack)(const std::int8_t*, std::size_t, std::uint8_t*);
  void (*unpack)(const std::uint8_t*, float, float*, std::size_t);
  void (*unpack_and_add)(const std::uint8_t*, float, float*, std::size_t);
};

Format format_of(Compression compression) noexcept {
  if (compression == Compression::int4) return {quantize_int4, pack_int4, unpack_int4, unpack_and_add_int4};
  if (compression == Compression::two_bit) return {quantize_2bit, pack_2bit, unpack_2bit, unpack_and_add_2bit};
  return {quantize_int8, pack_int8, unpack_int8, unpack_and_add_int8};
}

/// The last block may be short; it is computed as a whole one with zeros behind it.
float quantize_short(const Format& format, std::span<const float> values, float* residual, Noise noise,
                     std::int8_t* quanta) {
  alignas(64) Floats padded_values{}, padded_residual{};
  std::ranges::copy(values, padded_values.begin());
  std::copy_n(residual, values.size(), padded_residual.begin());
  const float scale = format.quantize(padded_values.data(), padded_residual.data(), noise, quanta);
  std::copy_n(padded_residual.begin(), values.size(), residual);
  return scale;
}

/// body(first element, count, the block on the wire), for each.
template <class Byte, class Body>
void for_each_block(Compression compression, std::size_t count, Byte* wire, const Body& body) {
  for (std::size_t at = 0; at < count; at += block_size) {
    body(at, std::min(block_size, count - at), wire);
    wire += wire_bytes(compression, block_size);
  }
}

/// The quanta of a block that is not finite: which of its numbers are not zero.
void mark_all_but_zeros(std::span<const float> values, Bytes& quanta) {
  for (std::size_t i = 0; i < values.size(); ++i) quanta[i] = values[i] == 0.0F ? 0 : 1;
}

/// A block that is not finite.
/// @param adds  to `values`, which may be NaN already
void unpack_nans(const Format& format, const std::uint8_t* bytes, bool adds, std::span<float> values) {
  Floats marks;
  format.unpack(bytes, 1.0F, marks.data(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (marks[i] != 0.0F)
      values[i] = std::numeric_limits<float>::quiet_NaN();
    else if (!adds)
      values[i] = 0.0F;
  }
}

void unpack_block(const Format& format, const std::uint8_t* bytes, float scale, bool adds, std::span<float> values) {
  if (std::isnan(scale)) return unpack_nans(format, bytes, adds, values);
  (adds ? format.unpack_and_add : format.unpack)(bytes, scale, values.data(), values.size());
}

void decode_by(const Format& format, Compression compression, bool adds, const std::byte* wire,
               std::span<float> values) {
  for_each_block(compression, values.size(), wire, [&](std::size_t at, std::size_t count, const std::byte* source) {
    float scale = 0;
    std::memcpy(&scale, source, sizeof scale);
    unpack_block(format, reinterpret_cast<const std::uint8_t*>(source + sizeof scale), scale, adds,
                 values.subspan(at, count));
  });
}

}  // namespace

void encode_blocks(Compression compression, std::span<const float> values, float* residual, Noise noise,
                   std::byte* wire, float* kept) {
  const Format format = format_of(compression);
  alignas(64) Bytes quanta;
  for_each_block(compression, values.size(), wire, [&](std::size_t at, std::size_t count, std::byte* target) {
    const Noise of_block = noise.at(at / block_size);
    const float scale = count == block_size
                            ? format.quantize(values.data() + at, residual + at, of_block, quanta.data())
                            : quantize_short(format, values.subspan(at), residual + at, of_block, quanta.data());
    if (std::isnan(scale)) mark_all_but_zeros(values.subspan(at, count), quanta);
    std::memcpy(target, &scale, sizeof scale);
    auto* const bytes = reinterpret_cast<std::uint8_t*>(target + sizeof scale);
    format.pack(quanta.data(), count, bytes);
    if (kept != nullptr) unpack_block(format, bytes, scale, false, {kept + at, count});
  });
}

void decode_blocks(Compression compression, const std::byte* wire, std::span<float> values) {
  decode_by(format_of(compression), compression, false, wire, values);
}

void decode_and_add_blocks(Compression compression, const std::byte* wire, std::span<float> values) {
  decode_by(format_of(compression), compression, true, wire, values);
}

}  // namespace ronda
