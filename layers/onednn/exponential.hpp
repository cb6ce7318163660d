#pragma once
#include <bit>
#include <cstdint>

namespace ronda::onednn {

/// e to the power x to 2 units in the last place, for x up to 88; 0 below -87. For loops that become vectors.
/// (Coefficients of Cephes' expf, Moshier.)
[[gnu::always_inline]] inline float exponential(float x) {
  constexpr float log2_of_e = 1.44269504F, ln2_high = 0.693359375F, ln2_low = -2.12194440e-4F, shift = 0x1.8p23F;
  const float shifted = x * log2_of_e + shift;  // its last bits are the power of two
  const float power = shifted - shift, rest = (x - power * ln2_high) - power * ln2_low;
  float sum = 1.9875691500e-4F;  // written out: a loop would keep the caller's from being vectorised
  sum = sum * rest + 1.3981999507e-3F;
  sum = sum * rest + 8.3334519073e-3F;
  sum = sum * rest + 4.1665795894e-2F;
  sum = sum * rest + 1.6666665459e-1F;
  sum = sum * rest + 5.0000001201e-1F;
  sum = sum * rest * rest + rest + 1;
  const float scale = std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) << 23) + 0x3f800000U);
  return x < -87.0F ? 0.0F : sum * scale;
}

}  // namespace ronda::onednn
