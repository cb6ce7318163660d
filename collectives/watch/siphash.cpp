#include <ronda/collectives/watch/siphash.hpp>

#include <unistd.h>

#include <bit>

namespace ronda {
namespace {

/// The names are the paper's.
struct SipState {
  std::uint64_t v0, v1, v2, v3;

  void round() noexcept {
    v0 += v1, v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0, v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1, v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2, v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  }
  void compress(std::uint64_t word) noexcept {
    v3 ^= word;
    round(), round();
    v0 ^= word;
  }
};

/// Up to eight bytes, the first the lowest.
std::uint64_t word_of(std::span<const std::byte> bytes) noexcept {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) word |= std::to_integer<std::uint64_t>(bytes[i]) << 8 * i;
  return word;
}

}  // namespace

std::optional<SipKey> SipKey::random() noexcept {
  SipKey key;
  if (::getentropy(key.words.data(), sizeof key.words) != 0) return {};
  return key;
}

std::uint64_t siphash(const SipKey& key, std::span<const std::byte> message) noexcept {
  const auto [k0, k1] = key.words;
  SipState state{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573};
  const std::uint64_t length = message.size();
  for (; message.size() >= 8; message = message.subspan(8)) state.compress(word_of(message.first(8)));
  state.compress(word_of(message) | length << 56);
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace ronda
