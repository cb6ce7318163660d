#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ronda {

/// A 64-bit hash of a sequence of values, for plans, parameters and random streams (XXH3, by the xxHash library; each
/// added value is hashed with the running value as its seed). Not for security.
class Hash {
 public:
  Hash& add(std::span<const std::byte> bytes) noexcept;
  Hash& add(std::string_view text) noexcept { return add(std::as_bytes(std::span(text.data(), text.size()))); }
  Hash& add(std::uint64_t number) noexcept { return add(std::as_bytes(std::span(&number, 1))); }

  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }
  /// 16 hexadecimal digits.
  [[nodiscard]] std::string text() const;

 private:
  std::uint64_t value_ = 0;
};

/// The 64-bit XXH3 of a long sequence of bytes, added in pieces of any size. For a file, `xxhsum -H3` prints the same
/// hash.
class StreamHash {
 public:
  StreamHash();
  ~StreamHash();
  StreamHash(const StreamHash&) = delete;
  StreamHash& operator=(const StreamHash&) = delete;

  void add(std::span<const std::byte> bytes) noexcept;
  /// The hash of all bytes so far; 16 hexadecimal digits.
  [[nodiscard]] std::string text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ronda
