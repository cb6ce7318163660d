#pragma once
#include <cstdint>
#include <cstring>

#include <ronda/core/multiversion.hpp>

namespace ronda::onednn {

/// to[k, i] = from[i, k] of 4 x 4 elements, in registers.
/// @param from_row, to_row  elements from one row to the next
[[gnu::always_inline]] inline void transpose_four(const float* from, std::int64_t from_row, float* to,
                                                  std::int64_t to_row) {
  using Four = float __attribute__((vector_size(16)));
  Four a, b, c, d;
  std::memcpy(&a, from, sizeof(a));
  std::memcpy(&b, from + from_row, sizeof(b));
  std::memcpy(&c, from + 2 * from_row, sizeof(c));
  std::memcpy(&d, from + 3 * from_row, sizeof(d));
  const Four ac_low = __builtin_shufflevector(a, c, 0, 4, 1, 5), ac_high = __builtin_shufflevector(a, c, 2, 6, 3, 7);
  const Four bd_low = __builtin_shufflevector(b, d, 0, 4, 1, 5), bd_high = __builtin_shufflevector(b, d, 2, 6, 3, 7);
  const Four columns[] = {
      __builtin_shufflevector(ac_low, bd_low, 0, 4, 1, 5), __builtin_shufflevector(ac_low, bd_low, 2, 6, 3, 7),
      __builtin_shufflevector(ac_high, bd_high, 0, 4, 1, 5), __builtin_shufflevector(ac_high, bd_high, 2, 6, 3, 7)};
  for (std::int64_t k = 0; k < 4; ++k) std::memcpy(to + k * to_row, &columns[k], sizeof(Four));
}

/// The same of 4 lines of 16 steps.
[[gnu::always_inline]] inline void transpose_four_by_sixteen(const float* from, std::int64_t from_row, float* to,
                                                             std::int64_t to_row) {
  using Sixteen = float __attribute__((vector_size(64)));
  using Four = float __attribute__((vector_size(16)));
  Sixteen a, b, c, d;
  std::memcpy(&a, from, sizeof(a));
  std::memcpy(&b, from + from_row, sizeof(b));
  std::memcpy(&c, from + 2 * from_row, sizeof(c));
  std::memcpy(&d, from + 3 * from_row, sizeof(d));
  const Sixteen ab_low = __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
  const Sixteen ab_high = __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  const Sixteen cd_low = __builtin_shufflevector(c, d, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
  const Sixteen cd_high = __builtin_shufflevector(c, d, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  const auto store = [to, to_row](std::int64_t k, const Sixteen& steps) RONDA_INLINE {
    const Four four[] = {
        // steps k, k + 4, …
        __builtin_shufflevector(steps, steps, 0, 1, 2, 3), __builtin_shufflevector(steps, steps, 4, 5, 6, 7),
        __builtin_shufflevector(steps, steps, 8, 9, 10, 11), __builtin_shufflevector(steps, steps, 12, 13, 14, 15)};
    for (std::int64_t i = 0; i < 4; ++i) std::memcpy(to + (k + 4 * i) * to_row, &four[i], sizeof(Four));
  };
  store(0, __builtin_shufflevector(ab_low, cd_low, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29));
  store(1, __builtin_shufflevector(ab_low, cd_low, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31));
  store(2, __builtin_shufflevector(ab_high, cd_high, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29));
  store(3, __builtin_shufflevector(ab_high, cd_high, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31));
}

}  // namespace ronda::onednn
