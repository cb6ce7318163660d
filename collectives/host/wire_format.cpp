#include <ronda/collectives/host/wire_format.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/half.hpp>
#include <ronda/core/multiversion.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

namespace ronda {
namespace {

// ---- bf16 and fp16 --------------------------------------------------------------------------------------------------

// Bare bits, because the compiler makes no vectors of structures.
// NOLINTBEGIN(bugprone-macro-parentheses): a type cannot stand in them.
#define RONDA_CASTS(name, Half)                                                                                 \
  RONDA_MULTIVERSION void encode_##name(const float* __restrict values, std::uint16_t* __restrict wire,         \
                                        std::size_t count) {                                                    \
    for (std::size_t i = 0; i < count; ++i) wire[i] = to_half<Half>(values[i]).bits;                            \
  }                                                                                                             \
  RONDA_MULTIVERSION void encode_and_keep_##name(float* __restrict values, std::uint16_t* __restrict wire,      \
                                                 std::size_t count) {                                           \
    for (std::size_t i = 0; i < count; ++i) {                                                                   \
      const Half half = to_half<Half>(values[i]);                                                               \
      wire[i] = half.bits;                                                                                      \
      values[i] = to_float(half);                                                                               \
    }                                                                                                           \
  }                                                                                                             \
  RONDA_MULTIVERSION void decode_##name(const std::uint16_t* __restrict wire, float* __restrict values,         \
                                        std::size_t count) {                                                    \
    for (std::size_t i = 0; i < count; ++i) values[i] = to_float(Half{wire[i]});                                \
  }                                                                                                             \
  RONDA_MULTIVERSION void decode_and_add_##name(const std::uint16_t* __restrict wire, float* __restrict values, \
                                                std::size_t count) {                                            \
    for (std::size_t i = 0; i < count; ++i) values[i] += to_float(Half{wire[i]});                               \
  }                                                                                                             \
  RONDA_MULTIVERSION void add_to_wire_##name(const float* __restrict values, std::uint16_t* __restrict wire,    \
                                             std::size_t count) {                                               \
    for (std::size_t i = 0; i < count; ++i) wire[i] = to_half<Half>(to_float(Half{wire[i]}) + values[i]).bits;  \
  }
RONDA_CASTS(bf16, BFloat16)
RONDA_CASTS(fp16, Float16)
#undef RONDA_CASTS
// NOLINTEND(bugprone-macro-parentheses)

std::uint16_t* halves(std::byte* wire) noexcept { return reinterpret_cast<std::uint16_t*>(wire); }
const std::uint16_t* halves(const std::byte* wire) noexcept { return reinterpret_cast<const std::uint16_t*>(wire); }

// ---- int8 -----------------------------------------------------------------------------------------------------------

constexpr std::size_t block_size = granule_of(Compression::int8);
using Floats = std::array<float, block_size>;
using Bytes = std::array<std::int8_t, block_size>;

/// The largest magnitude becomes a little less than 127, so that no rounding takes it beyond.
constexpr float most_quanta = 127.0F - 0x1p-10F;
/// Blocks below are zero on the wire: the inverse of their scale could not be had.
constexpr float smallest_magnitude = 1e-30F;

constexpr std::uint32_t infinity = 0x7f800000U;  ///< magnitudes of finite numbers are less
/// 127 times it is finite too.
constexpr float largest_scale = 0x1.fffffp127F / 127.0F;

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

/// Returns the scale. `residual` becomes what is lost.
RONDA_MULTIVERSION float quantize(const float* __restrict values, float* __restrict residual, Noise noise,
                                  std::int8_t* __restrict quanta) {
  alignas(64) Floats exact;
  std::uint32_t top = 0;  // magnitudes are in the order of their bits
  for (std::size_t i = 0; i < block_size; ++i) {
    exact[i] = values[i] + residual[i];
    top = std::max(top, std::bit_cast<std::uint32_t>(exact[i]) & 0x7fffffffU);
  }
  if (top >= infinity) top = saturate(values, exact);
  const float magnitude = std::bit_cast<float>(top);
  const bool finite = top < infinity;
  const bool some = finite && magnitude >= smallest_magnitude;
  const float scale = some ? std::min(magnitude / most_quanta, largest_scale) : 0.0F;
  const float to_fixed = some ? most_quanta * 65536.0F / magnitude : 0.0F;
  const auto seed = static_cast<std::uint32_t>(noise.key());
  constexpr std::size_t half = block_size / 2;
  if (!finite) exact.fill(0.0F);  // nothing of this is to come back
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
  return finite ? scale : std::numeric_limits<float>::quiet_NaN();
}

RONDA_MULTIVERSION void expand(const std::int8_t* __restrict quanta, float scale, float* __restrict values,
                               std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(quanta[i]) * scale;
}

RONDA_MULTIVERSION void expand_and_add(const std::int8_t* __restrict quanta, float scale, float* __restrict values,
                                       std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] += static_cast<float>(quanta[i]) * scale;
}

/// The last block may be short; it is computed as a whole one with zeros behind it.
float quantize_short(std::span<const float> values, float* residual, Noise noise, std::int8_t* quanta) {
  alignas(64) Floats padded_values{}, padded_residual{};
  alignas(64) Bytes padded_quanta;
  std::ranges::copy(values, padded_values.begin());
  std::copy_n(residual, values.size(), padded_residual.begin());
  const float scale = quantize(padded_values.data(), padded_residual.data(), noise, padded_quanta.data());
  std::copy_n(padded_residual.begin(), values.size(), residual);
  std::copy_n(padded_quanta.begin(), values.size(), quanta);
  return scale;
}

/// body(first element, count, the block on the wire), for each.
template <class Byte, class Body>
void for_each_block(std::size_t count, Byte* wire, const Body& body) {
  for (std::size_t at = 0; at < count; at += block_size) {
    body(at, std::min(block_size, count - at), wire);
    wire += wire_bytes(Compression::int8, block_size);
  }
}

/// @param kept  null, or where what others will decode goes
void encode_int8(std::span<const float> values, float* residual, Noise noise, std::byte* wire, float* kept) {
  for_each_block(values.size(), wire, [&](std::size_t at, std::size_t count, std::byte* target) {
    auto* const quanta = reinterpret_cast<std::int8_t*>(target + sizeof(float));
    const Noise of_block = noise.at(at / block_size);
    const float scale = count == block_size ? quantize(values.data() + at, residual + at, of_block, quanta)
                                            : quantize_short(values.subspan(at), residual + at, of_block, quanta);
    std::memcpy(target, &scale, sizeof scale);
    if (kept != nullptr) expand(quanta, scale, kept + at, count);
  });
}

template <class Expand>
void decode_int8(const std::byte* wire, std::span<float> values, const Expand& expand_block) {
  for_each_block(values.size(), wire, [&](std::size_t at, std::size_t count, const std::byte* source) {
    float scale = 0;
    std::memcpy(&scale, source, sizeof scale);
    expand_block(reinterpret_cast<const std::int8_t*>(source + sizeof(float)), scale, values.data() + at, count);
  });
}

[[noreturn]] void no_format(Compression compression) {
  throw LogicError("numbers are not sent as '" + std::string(name_of(compression)) + "' here");
}

}  // namespace

void encode(Compression compression, std::span<const float> values, float* residual, Noise noise, std::byte* wire) {
  switch (compression) {
    case Compression::bf16: return encode_bf16(values.data(), halves(wire), values.size());
    case Compression::fp16: return encode_fp16(values.data(), halves(wire), values.size());
    case Compression::int8: return encode_int8(values, residual, noise, wire, nullptr);
    default: no_format(compression);
  }
}

void encode_and_keep(Compression compression, std::span<float> values, float* residual, Noise noise, std::byte* wire) {
  switch (compression) {
    case Compression::bf16: return encode_and_keep_bf16(values.data(), halves(wire), values.size());
    case Compression::fp16: return encode_and_keep_fp16(values.data(), halves(wire), values.size());
    case Compression::int8: return encode_int8(values, residual, noise, wire, values.data());
    default: no_format(compression);
  }
}

void decode(Compression compression, const std::byte* wire, std::span<float> values) {
  switch (compression) {
    case Compression::bf16: return decode_bf16(halves(wire), values.data(), values.size());
    case Compression::fp16: return decode_fp16(halves(wire), values.data(), values.size());
    case Compression::int8: return decode_int8(wire, values, expand);
    default: no_format(compression);
  }
}

void decode_and_add(Compression compression, const std::byte* wire, std::span<float> values) {
  switch (compression) {
    case Compression::bf16: return decode_and_add_bf16(halves(wire), values.data(), values.size());
    case Compression::fp16: return decode_and_add_fp16(halves(wire), values.data(), values.size());
    case Compression::int8: return decode_int8(wire, values, expand_and_add);
    default: no_format(compression);
  }
}

void add_to_wire(Compression compression, std::span<const float> values, std::byte* wire) {
  switch (compression) {
    case Compression::bf16: return add_to_wire_bf16(values.data(), halves(wire), values.size());
    case Compression::fp16: return add_to_wire_fp16(values.data(), halves(wire), values.size());
    default: no_format(compression);
  }
}

}  // namespace ronda
