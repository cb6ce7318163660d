#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <ronda/core/hash_arithmetic.hpp>

namespace ronda::test {

/// What a DeviceHash computes, run on the host: what its kernels do, call by call.
class HostHash {
 public:
  explicit HostHash(std::span<const std::span<const std::byte>> pieces)
      : tables_(device_hash::Tables::of(pieces)), sums_(static_cast<std::size_t>(tables_.calls)) {}
  void run(std::span<std::uint64_t> hashes) {
    const device_hash::SumWords words{tables_.pieces.data(), tables_.piece_of_group.data(), sums_.data()};
    for (std::int64_t i = tables_.calls; i-- > 0;) words(i);
    const device_hash::SumCalls calls{tables_.pieces.data(), sums_.data(), hashes.data()};
    for (std::size_t i = 0; i < hashes.size(); ++i) calls(static_cast<std::int64_t>(i));
  }

 private:
  device_hash::Tables tables_;
  std::vector<std::uint64_t> sums_;
};

}  // namespace ronda::test
