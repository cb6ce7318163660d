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

// Numbers as they are sent. bf16 and fp16 are casts, to nearest, ties to even. int8 goes in blocks of a float32 scale
// and a byte for each number: of a block whose largest magnitude is m a number x becomes x/(m/127), rounded up or down
// at random so that its mean is exact (Alistarh et al., "QSGD", NeurIPS 2017, whose blocks of 512 these are). A block
// with a number that is not finite is decoded as NaN throughout, so that nothing looks sound that is not.

/// Elements of a block; data is cut between blocks only, or their places on the wire would depend on the cut.
[[nodiscard]] constexpr std::size_t granule_of(Compression compression) noexcept {
  return compression == Compression::int8 ? 512 : 1;
}

/// Bytes of so many numbers.
[[nodiscard]] constexpr std::size_t wire_bytes(Compression compression, std::size_t count) noexcept {
  switch (compression) {
    case Compression::bf16:
    case Compression::fp16: return 2 * count;
    case Compression::int8: {
      constexpr std::size_t block = granule_of(Compression::int8);
      return count + (count + block - 1) / block * sizeof(float);
    }
    case Compression::none:
    case Compression::automatic: break;
  }
  return sizeof(float) * count;
}

// `compression` is bf16, fp16 or int8; `wire` has wire_bytes of as many numbers as `values`, aligned for 16 bits where
// those are sent. `residual`, for int8 alone, is what earlier roundings lost: it is added before and made anew, so
// that in the course of runs nothing is lost (Seide et al., "1-bit stochastic gradient descent", Interspeech 2014).

void encode(Compression compression, std::span<const float> values, float* residual, Noise noise, std::byte* wire);
/// Also replaces `values` by what others will decode.
void encode_and_keep(Compression compression, std::span<float> values, float* residual, Noise noise, std::byte* wire);
void decode(Compression compression, const std::byte* wire, std::span<float> values);
void decode_and_add(Compression compression, const std::byte* wire, std::span<float> values);
/// Adds `values` to what is on the wire; bf16 and fp16 only.
void add_to_wire(Compression compression, std::span<const float> values, std::byte* wire);

}  // namespace ronda
