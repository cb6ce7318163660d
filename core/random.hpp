#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace ronda {

/// The use of random numbers. Each purpose has its own stream, so that an additional draw for one purpose does not
/// change the numbers of another.
enum class Purpose : std::uint32_t {
  initial_values = 1,
  sample_order = 2,
  layer = 3,
  test = 4,
  compression = 5,
  augmentation = 6,
  sampling = 7
};

/// A keyed bijection of 128 bits that looks random: Philox 4x32 with 10 rounds (Salmon et al., "Parallel random
/// numbers: as easy as 1, 2, 3", SC 2011).
[[nodiscard]] std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                      std::array<std::uint32_t, 2> key) noexcept;

/// Identifies one stream of random numbers by a seed, a purpose, and 64 bits for the stream (a parameter's name, an
/// epoch, a step). A value; equal keys give equal numbers on every rank, thread and processor.
class RngKey {
 public:
  RngKey(std::uint64_t seed, Purpose purpose, std::uint64_t stream = 0);
  RngKey(std::uint64_t seed, Purpose purpose, std::string_view stream);

  /// Another stream of the same seed and purpose, for `name`: for users that share this key.
  [[nodiscard]] RngKey derived(std::string_view name) const noexcept;

  /// 128 random bits for position `counter`, by Philox: without state, so element i is computed without elements 0 …
  /// i-1.
  [[nodiscard]] std::array<std::uint32_t, 4> bits(std::uint64_t counter) const noexcept;

  /// The same for sixteen positions at once, and several times as fast: words 4i to 4i + 3 are bits(counters[i]).
  void bits(const std::array<std::uint64_t, 16>& counters, std::array<std::uint32_t, 64>& words) const noexcept;

  /// Element `index` of a stream uniform in [0, 1); 24 bits.
  [[nodiscard]] float uniform(std::uint64_t index) const noexcept;
  /// Element `index` of a stream of standard normal numbers (Box and Muller 1958).
  [[nodiscard]] float normal(std::uint64_t index) const noexcept;
  /// A number in [0, bound) for position `counter`, without measurable bias for bounds up to 2^40; bound > 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound, std::uint64_t counter) const noexcept;
  /// The same for sixteen positions at once, which is faster: numbers[i] is below(bounds[i], counters[i]).
  void below(const std::array<std::uint64_t, 16>& bounds, const std::array<std::uint64_t, 16>& counters,
             std::array<std::uint64_t, 16>& numbers) const noexcept;

 private:
  std::array<std::uint32_t, 2> key_, stream_;
};

}  // namespace ronda
