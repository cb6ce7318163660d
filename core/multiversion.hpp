#pragma once
#include <cstdint>
#include <type_traits>

/// Marks a function whose loops are compiled for several instruction sets; the loader picks the best for the processor.
/// All of Ronda's own loops are dispatched this way. All versions round alike: contraction is off and fused
/// multiply-adds are written explicitly, so the bits do not depend on the processor. Exceptions are the files listed in
/// the build (fused_convolution.cpp and others), which use fused multiply-adds if the processor has them. Sanitizers
/// cannot run the loader's resolvers, so sanitized builds compile only the baseline.
///
/// Each such function is aligned to a cache line: with chance alignment an allreduce of 2 MiB over four ranks was an
/// eighth slower. (Clang does not accept an alignment together with target_clones.)
#if !defined(__x86_64__) || defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define RONDA_MULTIVERSION
#elif defined(__clang__)
#define RONDA_MULTIVERSION __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define RONDA_MULTIVERSION __attribute__((aligned(64), target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif

/// A lambda that must be inlined into the RONDA_MULTIVERSION function around it, to be compiled for each instruction
/// set.
#define RONDA_INLINE __attribute__((always_inline))

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
