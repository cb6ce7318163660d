#include <ronda/core/hash.hpp>
#include <ronda/core/random.hpp>

#include <cmath>
#include <numbers>

namespace ronda {

namespace {

std::array<std::uint32_t, 2> halves(std::uint64_t number) {
  return {static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32)};
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) noexcept {
  auto [c0, c1, c2, c3] = counter;
  auto [k0, k1] = key;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c0, p1 = std::uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(p1);
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {c0, c1, c2, c3};
}

// The seed and the purpose are mixed, so that seeds 0, 1, 2 give unrelated streams.
RngKey::RngKey(std::uint64_t seed, Purpose purpose, std::uint64_t stream)
    : key_(halves(Hash().add(seed).add(static_cast<std::uint64_t>(purpose)).value())), stream_(halves(stream)) {}

RngKey::RngKey(std::uint64_t seed, Purpose purpose, std::string_view stream)
    : RngKey(seed, purpose, Hash().add(stream).value()) {}

std::array<std::uint32_t, 4> RngKey::bits(std::uint64_t counter) const noexcept {
  const auto [low, high] = halves(counter);
  return philox4x32({low, high, stream_[0], stream_[1]}, key_);
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
  const std::uint64_t word = std::uint64_t{words[0]} << 32 | words[1];
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(Wide{word} * bound >> 64);  // Lemire 2019
}

}  // namespace ronda
