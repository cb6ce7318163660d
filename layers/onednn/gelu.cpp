#include <ronda/core/multiversion.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/layers/onednn/exponential.hpp>
#include <ronda/layers/onednn/operations.hpp>

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
RONDA_MULTIVERSION void gelu(const float* x, float* y, Range range) {
  constexpr std::size_t most = 256;
  float some[most];
  for (std::size_t begin = range.begin; begin < range.end; begin += most) {
    const std::size_t count = std::min(most, range.end - begin);
    std::copy_n(x + begin, count, some);
    for (std::size_t i = 0; i < count; ++i) y[begin + i] = some[i] * normal(some[i]).distribution;
  }
}
RONDA_MULTIVERSION void gelu_backward(const float* __restrict x, const float* __restrict dy, float* __restrict dx,
                                      Range range) {
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const Normal at = normal(x[i]);
    dx[i] = dy[i] * (at.distribution + x[i] * at.density);
  }
}

/// On the stored elements in their order: 0 stays 0, so padding does.
class Gelu final : public Operation {
 public:
  Gelu(const Runtime& runtime, const TensorDesc& input)
      : threads_(runtime.threads), count_(static_cast<std::size_t>(input.padded_count())) {
    plan_ = plan_of_function(input, true, "our loops");
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(Inputs inputs, const Pass&) override {
    const auto* x = inputs.front().pointer<const float>();
    auto* y = memory_.output.pointer<float>();
    parallel_for(threads_, count_, [x, y](Range range) { gelu(x, y, range); });
  }
  void backward(Inputs inputs, const Tensor& output_gradient, const Pass&) override {
    if (memory_.input_gradient().empty()) return;
    const auto *x = inputs.front().pointer<const float>(), *dy = output_gradient.pointer<const float>();
    auto* dx = memory_.input_gradient().pointer<float>();
    parallel_for(threads_, count_, [x, dy, dx](Range range) { gelu_backward(x, dy, dx, range); });
  }

 private:
  int threads_;
  std::size_t count_;
  OperationMemory memory_;
};

}  // namespace

std::unique_ptr<Operation> make_gelu(const Runtime& runtime, const TensorDesc& input) {
  return std::make_unique<Gelu>(runtime, input);
}

}  // namespace ronda::onednn
