#include <ronda/collectives/host/block_format.hpp>
#include <ronda/collectives/host/wire_format.hpp>
#include <ronda/core/dtype.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/multiversion.hpp>

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

[[noreturn]] void no_format(Compression compression) {
  throw LogicError("numbers are not sent as '" + std::string(name_of(compression)) + "' here");
}

}  // namespace

void encode(Compression compression, std::span<const float> values, float* residual, Noise noise, std::byte* wire) {
  switch (compression) {
    case Compression::bf16: return encode_bf16(values.data(), halves(wire), values.size());
    case Compression::fp16: return encode_fp16(values.data(), halves(wire), values.size());
    case Compression::int8:
    case Compression::int4:
    case Compression::two_bit: return encode_blocks(compression, values, residual, noise, wire, nullptr);
    default: no_format(compression);
  }
}

void encode_and_keep(Compression compression, std::span<float> values, float* residual, Noise noise, std::byte* wire) {
  switch (compression) {
    case Compression::bf16: return encode_and_keep_bf16(values.data(), halves(wire), values.size());
    case Compression::fp16: return encode_and_keep_fp16(values.data(), halves(wire), values.size());
    case Compression::int8:
    case Compression::int4:
    case Compression::two_bit: return encode_blocks(compression, values, residual, noise, wire, values.data());
    default: no_format(compression);
  }
}

void decode(Compression compression, const std::byte* wire, std::span<float> values) {
  switch (compression) {
    case Compression::bf16: return decode_bf16(halves(wire), values.data(), values.size());
    case Compression::fp16: return decode_fp16(halves(wire), values.data(), values.size());
    case Compression::int8:
    case Compression::int4:
    case Compression::two_bit: return decode_blocks(compression, wire, values);
    default: no_format(compression);
  }
}

void decode_and_add(Compression compression, const std::byte* wire, std::span<float> values) {
  switch (compression) {
    case Compression::bf16: return decode_and_add_bf16(halves(wire), values.data(), values.size());
    case Compression::fp16: return decode_and_add_fp16(halves(wire), values.data(), values.size());
    case Compression::int8:
    case Compression::int4:
    case Compression::two_bit: return decode_and_add_blocks(compression, wire, values);
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
