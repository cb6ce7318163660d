#include <ronda/runtime/core/hash.hpp>

#define XXH_INLINE_ALL  // from its header alone, so that our users need not link it
#include <xxhash.h>

#include <array>
#include <cstdio>

namespace ronda {

Hash& Hash::add(std::span<const std::byte> bytes) noexcept {
  value_ = XXH3_64bits_withSeed(bytes.data(), bytes.size(), value_);
  return *this;
}

std::string Hash::text() const {
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(value_));
  return {digits.data(), 16};
}

}  // namespace ronda
