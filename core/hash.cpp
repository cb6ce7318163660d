#include <ronda/core/hash.hpp>

#define XXH_INLINE_ALL  // from its header alone, so that our users need not link it
#include <xxhash.h>

#include <array>
#include <cstdio>

namespace ronda {
namespace {

std::string digits_of(std::uint64_t value) {
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(value));
  return {digits.data(), 16};
}

}  // namespace

Hash& Hash::add(std::span<const std::byte> bytes) noexcept {
  value_ = XXH3_64bits_withSeed(bytes.data(), bytes.size(), value_);
  return *this;
}

std::string Hash::text() const { return digits_of(value_); }

struct StreamHash::Impl {
  XXH3_state_t state;
};

StreamHash::StreamHash() : impl_(std::make_unique<Impl>()) { XXH3_64bits_reset(&impl_->state); }
StreamHash::~StreamHash() = default;

void StreamHash::add(std::span<const std::byte> bytes) noexcept {
  XXH3_64bits_update(&impl_->state, bytes.data(), bytes.size());
}

std::string StreamHash::text() const { return digits_of(XXH3_64bits_digest(&impl_->state)); }

}  // namespace ronda
