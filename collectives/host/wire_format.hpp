#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include <ronda/collectives/compression.hpp>

namespace ronda {

/// Random bits without state: the same key gives the same ones on every rank, thread and processor. Keys make keys
/// (of a run, a rank, a block), by SplitMix64's finaliser (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
class Noise {
 public:
  explicit constexpr Noise(std::uint64_t key = 0) noexcept : key_(key) {}
  /// Another one for each place.
  [[nodiscard]] constexpr Noise at(std::uint64_t place) const noexcept {
    std::uint64_t z = key_ + (place + 1) * 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return Noise(z ^ (z >> 31));
  }
  [[nodiscard]] constexpr std::uint64_t key() const noexcept { return key_; }

 private:
  std::uint64_t key_;
};

/// What a collective does with the numbers that it sends.
struct Wire {
  Compression compression = Compression::none;  ///< never automatic
  Noise noise = Noise();                        ///< for stochastic rounding, another one for each tensor
};

// Numbers as they are sent. bf16 and fp16 are casts, to nearest, ties to even. int8, int4 and 2bit go in blocks of a
// float32 scale and a few bits for each number: block_format.hpp.

/// Elements of a block; data is cut between blocks only, or their places on the wire would depend on the cut.
[[nodiscard]] constexpr std::size_t granule_of(Compression compression) noexcept {
  return keeps_lost(compression) ? 512 : 1;
}

/// Bytes of so many numbers.
[[nodiscard]] constexpr std::size_t wire_bytes(Compression compression, std::size_t count) noexcept {
  const auto in_blocks = [&](std::size_t a_byte) {  // numbers
    const std::size_t block = granule_of(compression), scales = (count + block - 1) / block;
    return (count + a_byte - 1) / a_byte + scales * sizeof(float);
  };
  switch (compression) {
    case Compression::bf16:
    case Compression::fp16: return 2 * count;
    case Compression::int8: return in_blocks(1);
    case Compression::int4: return in_blocks(2);
    case Compression::two_bit: return in_blocks(4);
    case Compression::none:
    case Compression::automatic: break;
  }
  return sizeof(float) * count;
}

// `compression` is neither none nor automatic; `wire` has wire_bytes of as many numbers as `values`, aligned for 16
// bits where those are sent. `residual`, where keeps_lost, is what earlier roundings lost: it is added before and made
// anew, so that in the course of runs nothing is lost (Seide et al., "1-bit stochastic gradient descent", Interspeech
// 2014).

void encode(Compression compression, std::span<const float> values, float* residual, Noise noise, std::byte* wire);
/// Also replaces `values` by what others will decode.
void encode_and_keep(Compression compression, std::span<float> values, float* residual, Noise noise, std::byte* wire);
void decode(Compression compression, const std::byte* wire, std::span<float> values);
void decode_and_add(Compression compression, const std::byte* wire, std::span<float> values);
/// Adds `values` to what is on the wire; bf16 and fp16 only.
void add_to_wire(Compression compression, std::span<const float> values, std::byte* wire);

}  // namespace ronda
