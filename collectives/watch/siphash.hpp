#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ronda {

/// 128 bits that only those know who may speak.
struct SipKey {
  std::array<std::uint64_t, 2> words{};

  /// From the system's source of secrets; nothing where it has none.
  [[nodiscard]] static std::optional<SipKey> random() noexcept;
};

/// SipHash-2-4: 64 bits of a message that cannot be told without the key, whatever other messages and their hashes are
/// known (Aumasson and Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012).
[[nodiscard]] std::uint64_t siphash(const SipKey& key, std::span<const std::byte> message) noexcept;

}  // namespace ronda
