#pragma once
#include <cstdint>
#include <type_traits>

/// A lambda that must become part of the RONDA_MULTIVERSION function it is written in, and so of every instruction set.
#define RONDA_INLINE __attribute__((always_inline))

namespace ronda::onednn {

/// Calls `body(first lane, width)` for pieces of 16 lanes, then 8, then for what is left. The width of the first two is
/// a constant: the compiler turns loops over it into single vector instructions and keeps local arrays in registers.
template <class Body>
[[gnu::always_inline]] inline void by_lanes(std::int64_t lanes, Body&& body) {
  std::int64_t lane = 0;
  for (; lane + 16 <= lanes; lane += 16) body(lane, std::integral_constant<std::int64_t, 16>{});
  for (; lane + 8 <= lanes; lane += 8) body(lane, std::integral_constant<std::int64_t, 8>{});
  if (lane < lanes) body(lane, lanes - lane);
}

}  // namespace ronda::onednn
