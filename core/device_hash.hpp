#pragma once
#include <cstdint>
#include <span>

#include <ronda/core/stream.hpp>

namespace ronda {

/// Hashes of pieces of a device's memory, computed over there: what comes to the host is 8 bytes a piece. To compare
/// what devices hold with one another; not for security, and not the processor's Hash.
///
/// A piece's hash is the sum, modulo 2^64, of all its words of 4 bytes, each mixed with its place. So its bits do not
/// depend on the order in which a device adds; one word that differs always shows, several all but once in 2^64.
class DeviceHash {
 public:
  virtual ~DeviceHash() = default;
  /// The pieces as they are after all that `stream` was given before. The host waits. Allocates nothing.
  /// @param hashes  one for each piece, in their order
  virtual void run(std::span<std::uint64_t> hashes, Stream& stream) = 0;
};

}  // namespace ronda
