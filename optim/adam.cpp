#include <ronda/optim/adam.hpp>
#include <ronda/optim/update_loop.hpp>
#include <ronda/runtime/core/multiversion.hpp>

#include <array>
#include <cmath>

namespace ronda {
namespace {

struct AdamScalars {
  float factor;  ///< of the gradient
  float decay;   ///< added to the gradient, times p
  float keep;    ///< p is multiplied with it first
  float one_minus_beta1, beta2, one_minus_beta2;
  float rate;    ///< divided by m's bias correction
  float v_root;  ///< root of v's bias correction
  float epsilon;
};

RONDA_MULTIVERSION void adam(const ArenaPart& part, AdamScalars s) {
  update_each<2>(part, [=](float& value, float summed, float& mean, float& square) RONDA_INLINE {
    const float kept = value * s.keep;
    const float gradient = summed * s.factor + s.decay * kept;
    mean = mean + s.one_minus_beta1 * (gradient - mean);
    square = s.beta2 * square + s.one_minus_beta2 * gradient * gradient;
    value = kept - s.rate * mean / (std::sqrt(square) / s.v_root + s.epsilon);
  });
}

}  // namespace

std::span<const std::string_view> Adam::states() const noexcept {
  static constexpr std::array<std::string_view, 2> names{"exp_avg", "exp_avg_sq"};
  return names;
}

void Adam::update(const ArenaPart& part, const Scalars& s) const noexcept {
  const bool decoupled = decay_ == Decay::decoupled;
  const auto step = static_cast<double>(s.step);
  AdamScalars scalars;
  scalars.factor = static_cast<float>(s.gradient_factor);
  scalars.decay = decoupled ? 0.0F : static_cast<float>(s.weight_decay);
  scalars.keep = decoupled ? static_cast<float>(1 - s.learning_rate * s.weight_decay) : 1.0F;
  scalars.one_minus_beta1 = static_cast<float>(1 - beta1_);
  scalars.beta2 = static_cast<float>(beta2_);
  scalars.one_minus_beta2 = static_cast<float>(1 - beta2_);
  scalars.rate = static_cast<float>(s.learning_rate / (1 - std::pow(beta1_, step)));
  scalars.v_root = static_cast<float>(std::sqrt(1 - std::pow(beta2_, step)));
  scalars.epsilon = static_cast<float>(epsilon_);
  adam(part, scalars);
}

}  // namespace ronda
