#include <ronda/core/multiversion.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/layers/onednn/exponential.hpp>
#include <ronda/layers/onednn/gelu.hpp>

#include <algorithm>
#include <cmath>

namespace ronda::onednn {
namespace {

/// The normal distribution at x.
struct Normal {
  float distribution, density;
};
/// The distribution within 3e-7: one exponential serves both (Abramowitz and Stegun, "Handbook of Mathematical
/// Functions", 7.1.26).
[[gnu::always_inline]] inline Normal normal(float x) {
  const float power = exponential(-0.5F * x * x), t = 1 / (1 + 0.3275911F * 0.707106781F * std::fabs(x));
  float sum = 1.061405429F;
  sum = sum * t - 1.453152027F;
  sum = sum * t + 1.421413741F;
  sum = sum * t - 0.284496736F;
  sum = sum * t + 0.254829592F;
  const float tail = 0.5F * sum * t * power;
  return {x < 0 ? tail : 1 - tail, 0.398942280F * power};  // 1 / √(2π)
}

/// y may be x.
RONDA_MULTIVERSION void gelu_of(const float* x, float* y, Range range) {
  constexpr std::size_t most = 256;
  float some[most];
  for (std::size_t begin = range.begin; begin < range.end; begin += most) {
    const std::size_t count = std::min(most, range.end - begin);
    std::copy_n(x + begin, count, some);
    for (std::size_t i = 0; i < count; ++i) y[begin + i] = some[i] * normal(some[i]).distribution;
  }
}
RONDA_MULTIVERSION void gradient_of(const float* __restrict x, const float* __restrict dy, float* __restrict dx,
                                    Range range) {
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const Normal at = normal(x[i]);
    dx[i] = dy[i] * (at.distribution + x[i] * at.density);
  }
}

}  // namespace

void gelu(const float* x, float* y, std::size_t count, int threads) {
  parallel_for(threads, count, [x, y](Range range) { gelu_of(x, y, range); });
}
void gelu_backward(const float* dy, const float* x, float* dx, std::size_t count, int threads) {
  parallel_for(threads, count, [x, dy, dx](Range range) { gradient_of(x, dy, dx, range); });
}

}  // namespace ronda::onednn
