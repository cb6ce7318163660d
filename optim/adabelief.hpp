#pragma once
#include <cmath>
#include <span>

#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/rule.hpp>

namespace ronda {

/// AdaBelief (Zhuang et al., "AdaBelief optimizer: adapting stepsizes by the belief in observed gradients", NeurIPS
/// 2020) as its authors' package computes it by default, with decoupled decay, in update t:
///
///     p *= 1 - rate · decay
///     m += (1 - beta1) · (g - m);  s = beta2 · s + (1 - beta2) · (g - m)² + epsilon
///     p -= rate / (1 - beta1^t) · m / (√(s / (1 - beta2^t)) + epsilon)
///
/// The state is s without the epsilons, which add epsilon / (1 - beta2) to s / (1 - beta2^t) in every update: the state
/// of an element without gradients stays 0.
struct AdaBelief {
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-16;  ///< more than 0, as for Adam

  static constexpr std::array<std::string_view, 2> states{"exp_avg", "exp_avg_var"};
  static constexpr bool needs_norms = false;

  struct Scalars {
    float factor;
    float keep;  ///< factor of p, applied first
    float rate;  ///< divided by m's bias correction
    float one_minus_beta1, beta2, one_minus_beta2;
    float s_correction;  ///< factor of s
    float s_floor;       ///< the part of the epsilons in s
    float epsilon;
  };
  [[nodiscard]] RONDA_HOST_DEVICE Scalars scalars(const RuleStep& step) const {
    const auto t = static_cast<double>(step.step);
    return {static_cast<float>(step.gradient_factor),
            static_cast<float>(1 - step.learning_rate * step.weight_decay),
            static_cast<float>(step.learning_rate / (1 - std::pow(beta1, t))),
            static_cast<float>(1 - beta1),
            static_cast<float>(beta2),
            static_cast<float>(1 - beta2),
            static_cast<float>(1 / (1 - std::pow(beta2, t))),
            static_cast<float>(epsilon / (1 - beta2)),
            static_cast<float>(epsilon)};
  }
  RONDA_HOST_DEVICE_INLINE static void apply(const Scalars& s, float& value, float sum, float& mean, float& variance) {
    const float gradient = sum * s.factor;
    mean += s.one_minus_beta1 * (gradient - mean);
    const float surprise = gradient - mean;
    variance = s.beta2 * variance + s.one_minus_beta2 * surprise * surprise;
    value = value * s.keep - s.rate * mean / (std::sqrt(variance * s.s_correction + s.s_floor) + s.epsilon);
  }

  [[nodiscard]] static std::span<const OptimizerRow> rows() noexcept;
};

}  // namespace ronda
