#pragma once
#include <cstdint>
#include <cstring>

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

}  // namespace ronda::onednn
