#pragma once
#include <span>

#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/rule.hpp>

namespace ronda {

/// Lion (Chen et al., "Symbolic discovery of optimization algorithms", NeurIPS 2023), with decoupled decay:
///
///     p *= 1 - rate · decay;  p -= rate · sign(beta1 · m + (1 - beta1) · g);  m = beta2 · m + (1 - beta2) · g
///
/// The sign of 0 is 0. Use a third to a tenth of AdamW's rate, and a decay larger by the same factor.
struct Lion {
  double beta1 = 0.9, beta2 = 0.99;

  static constexpr std::array<std::string_view, 1> states{"exp_avg"};
  static constexpr bool needs_norms = false;

  struct Scalars {
    float factor;
    float keep;  ///< factor of p, applied first
    float rate, beta1, one_minus_beta1, beta2, one_minus_beta2;
  };
  [[nodiscard]] RONDA_HOST_DEVICE Scalars scalars(const RuleStep& step) const {
    return {static_cast<float>(step.gradient_factor),
            static_cast<float>(1 - step.learning_rate * step.weight_decay),
            static_cast<float>(step.learning_rate),
            static_cast<float>(beta1),
            static_cast<float>(1 - beta1),
            static_cast<float>(beta2),
            static_cast<float>(1 - beta2)};
  }
  RONDA_HOST_DEVICE_INLINE static void apply(const Scalars& s, float& value, float sum, float& mean, float&) {
    const float gradient = sum * s.factor;
    const float direction = s.beta1 * mean + s.one_minus_beta1 * gradient;
    mean = s.beta2 * mean + s.one_minus_beta2 * gradient;
    value = value * s.keep - (direction > 0 ? s.rate : direction < 0 ? -s.rate : 0.0F);
  }

  [[nodiscard]] static std::span<const OptimizerRow> rows() noexcept;
};

}  // namespace ronda
