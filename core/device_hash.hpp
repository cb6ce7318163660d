#pragma once
#include <cstdint>
#include <span>

#include <ronda/core/stream.hpp>

namespace ronda {

/// Hashes pieces of device memory on the device; only 8 bytes per piece are copied to the host. Compares the contents
/// of devices with each other; not for security, and different from the processor's Hash.
///
/// The hash of a piece is the sum, modulo 2^64, of its 4-byte words, each mixed with its position. So the bits do not
/// depend on the order of addition. One different word always changes the hash; several do, except with probability
/// 2^-64.
class DeviceHash {
 public:
  virtual ~DeviceHash() = default;
  /// Hashes the pieces after all work issued to `stream` before. The host waits. Allocates nothing.
  /// @param hashes  one for each piece, in their order
  virtual void run(std::span<std::uint64_t> hashes, Stream& stream) = 0;
};

}  // namespace ronda
