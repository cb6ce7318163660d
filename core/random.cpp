#include <ronda/core/hash.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/core/random.hpp>

#include <cmath>
#include <numbers>

namespace ronda {

namespace {

constexpr int philox_rounds = 10;
constexpr std::array<std::uint32_t, 2> philox_factors{0xD2511F53, 0xCD9E8D57};
constexpr std::array<std::uint32_t, 2> philox_steps{0x9E3779B9, 0xBB67AE85};

std::array<std::uint32_t, 2> halves(std::uint64_t number) {
  return {static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32)};
}

/// 64 random bits as a number below a bound: Lemire 2019.
std::uint64_t scaled(std::uint32_t high, std::uint32_t low, std::uint64_t bound) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(Wide{std::uint64_t{high} << 32 | low} * bound >> 64);
}

/// The rounds of philox4x32, below, for sixteen counters side by side. Both halves of a product are computed by
/// themselves, and loops are not unrolled before they are vectorised: either would cost half of the speed.
RONDA_MULTIVERSION void philox_by_sixteen(const std::uint64_t* __restrict counters, std::array<std::uint32_t, 2> stream,
                                          std::array<std::uint32_t, 2> key, std::uint32_t* __restrict words) {
  std::uint32_t c0[16], c1[16], c2[16], c3[16];
  for (int i = 0; i < 16; ++i) {
    c0[i] = static_cast<std::uint32_t>(counters[i]);
    c1[i] = static_cast<std::uint32_t>(counters[i] >> 32);
    c2[i] = stream[0];
    c3[i] = stream[1];
  }
  for (int round = 0; round < philox_rounds; ++round) {
#pragma GCC unroll 1
    for (int i = 0; i < 16; ++i) {
      const auto high0 = static_cast<std::uint32_t>((std::uint64_t{philox_factors[0]} * c0[i]) >> 32);
      const auto high1 = static_cast<std::uint32_t>((std::uint64_t{philox_factors[1]} * c2[i]) >> 32);
      const std::uint32_t low0 = philox_factors[0] * c0[i], low1 = philox_factors[1] * c2[i];
      c0[i] = high1 ^ c1[i] ^ key[0];
      c1[i] = low1;
      c2[i] = high0 ^ c3[i] ^ key[1];
      c3[i] = low0;
    }
    key[0] += philox_steps[0];
    key[1] += philox_steps[1];
  }
  for (int i = 0; i < 16; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) noexcept {
  auto [c0, c1, c2, c3] = counter;
  auto [k0, k1] = key;
  for (int round = 0; round < philox_rounds; ++round) {
    const std::uint64_t p0 = std::uint64_t{philox_factors[0]} * c0, p1 = std::uint64_t{philox_factors[1]} * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(p1);
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(p0);
    k0 += philox_steps[0];
    k1 += philox_steps[1];
  }
  return {c0, c1, c2, c3};
}

// The seed and the purpose are mixed, so that seeds 0, 1, 2 give unrelated streams.
RngKey::RngKey(std::uint64_t seed, Purpose purpose, std::uint64_t stream)
    : key_(halves(Hash().add(seed).add(static_cast<std::uint64_t>(purpose)).value())), stream_(halves(stream)) {}

RngKey::RngKey(std::uint64_t seed, Purpose purpose, std::string_view stream)
    : RngKey(seed, purpose, Hash().add(stream).value()) {}

RngKey RngKey::derived(std::string_view name) const noexcept {
  RngKey key = *this;
  const std::uint64_t mine = std::uint64_t{key_[1]} << 32 | key_[0];
  key.key_ = halves(Hash().add(mine).add(name).value());
  return key;
}

std::array<std::uint32_t, 4> RngKey::bits(std::uint64_t counter) const noexcept {
  const auto [low, high] = halves(counter);
  return philox4x32({low, high, stream_[0], stream_[1]}, key_);
}

void RngKey::bits(const std::array<std::uint64_t, 16>& counters, std::array<std::uint32_t, 64>& words) const noexcept {
  philox_by_sixteen(counters.data(), stream_, key_, words.data());
}

float RngKey::uniform(std::uint64_t index) const noexcept {
  return static_cast<float>(bits(index / 4)[index % 4] >> 8) * 0x1p-24F;
}

float RngKey::normal(std::uint64_t index) const noexcept {
  const auto words = bits(index / 4);
  const std::size_t pair = index % 4 / 2 * 2;
  const double radius = std::sqrt(-2.0 * std::log((words[pair] + 1.0) * 0x1p-32));  // never log(0)
  const double angle = 2.0 * std::numbers::pi * words[pair + 1] * 0x1p-32;
  return static_cast<float>(radius * (index % 2 == 0 ? std::cos(angle) : std::sin(angle)));
}

std::uint64_t RngKey::below(std::uint64_t bound, std::uint64_t counter) const noexcept {
  const auto words = bits(counter);
  return scaled(words[0], words[1], bound);
}

void RngKey::below(const std::array<std::uint64_t, 16>& bounds, const std::array<std::uint64_t, 16>& counters,
                   std::array<std::uint64_t, 16>& numbers) const noexcept {
  std::array<std::uint32_t, 64> words;
  bits(counters, words);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = scaled(words[4 * i], words[4 * i + 1], bounds[i]);
}

}  // namespace ronda
