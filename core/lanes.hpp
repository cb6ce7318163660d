#pragma once
#include <cstdint>
#include <type_traits>

#include <ronda/core/multiversion.hpp>

namespace ronda {

/// Calls `body(first lane, width)` for pieces of 16 lanes, then of 8, then for the remaining lanes. Widths 16 and 8 are
/// compile-time constants, so that the compiler turns loops over them into single vector instructions.
template <class Body>
[[gnu::always_inline]] inline void by_lanes(std::int64_t lanes, Body&& body) {
  std::int64_t lane = 0;
  for (; lane + 16 <= lanes; lane += 16) body(lane, std::integral_constant<std::int64_t, 16>{});
  for (; lane + 8 <= lanes; lane += 8) body(lane, std::integral_constant<std::int64_t, 8>{});
  if (lane < lanes) body(lane, lanes - lane);
}

/// Calls `body(l)` for 0 … width-1, as a loop that the compiler vectorises before unrolling: otherwise conditional
/// expressions would become branches. Local arrays of 16 elements that only such loops access stay in registers.
template <class Width, class Body>
[[gnu::always_inline]] inline void each_lane(Width width, Body&& body) {
  const std::int64_t count = width;
#pragma GCC unroll 1
  for (std::int64_t l = 0; l < count; ++l) body(l);
}

}  // namespace ronda
