#pragma once
#include <cmath>
#include <span>

#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/rule.hpp>

namespace ronda {

/// Adam with Nesterov momentum (Dozat, "Incorporating Nesterov momentum into Adam", 2016) as PyTorch's
/// torch.optim.NAdam computes it, in update t:
///
///     μ(t) = beta1 · (1 - 0.5 · 0.96^(t · momentum_decay)),  M(t) = μ(1) · … · μ(t)
///     g += decay · p;  m += (1 - beta1) · (g - m);  v = beta2 · v + (1 - beta2) · g²
///     n = (1 - μ(t)) / (1 - M(t)) · g + μ(t+1) / (1 - M(t+1)) · m
///     p -= rate · n / (√(v / (1 - beta2^t)) + epsilon)
struct NAdam {
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;  ///< more than 0, as for Adam
  double momentum_decay = 0.004;

  static constexpr std::array<std::string_view, 2> states{"exp_avg", "exp_avg_sq"};
  static constexpr bool needs_norms = false;

  struct Scalars {
    float factor, decay, one_minus_beta1, beta2, one_minus_beta2;
    float gradient_rate, mean_rate;  ///< the rate times the factors of g and m
    float v_root;                    ///< root of v's bias correction
    float epsilon;
  };
  [[nodiscard]] RONDA_HOST_DEVICE Scalars scalars(const RuleStep& step) const {
    const auto t = static_cast<double>(step.step);
    const double now = momentum(t), next = momentum(t + 1), product = momenta(t);
    return {static_cast<float>(step.gradient_factor),
            static_cast<float>(step.weight_decay),
            static_cast<float>(1 - beta1),
            static_cast<float>(beta2),
            static_cast<float>(1 - beta2),
            static_cast<float>(step.learning_rate * (1 - now) / (1 - product)),
            static_cast<float>(step.learning_rate * next / (1 - product * next)),
            static_cast<float>(std::sqrt(1 - std::pow(beta2, t))),
            static_cast<float>(epsilon)};
  }
  RONDA_HOST_DEVICE_INLINE static void apply(const Scalars& s, float& value, float sum, float& mean, float& square) {
    const float gradient = sum * s.factor + s.decay * value;
    mean += s.one_minus_beta1 * (gradient - mean);
    square = s.beta2 * square + s.one_minus_beta2 * gradient * gradient;
    value -= (s.gradient_rate * gradient + s.mean_rate * mean) / (std::sqrt(square) / s.v_root + s.epsilon);
  }

  [[nodiscard]] static std::span<const OptimizerRow> rows() noexcept;

 private:
  [[nodiscard]] RONDA_HOST_DEVICE double momentum(double t) const {
    return beta1 * (1 - 0.5 * std::pow(0.96, t * momentum_decay));
  }
  /// M(t), without a state. With q = 0.96^momentum_decay, the logarithm of the product of 1 - q^i / 2 is, by the series
  /// of log(1 - x), minus the sum over k of (q^k + q^2k + … + q^tk) / (k · 2^k); 60 terms give full precision.
  [[nodiscard]] RONDA_HOST_DEVICE double momenta(double t) const {
    const double log_q = momentum_decay * std::log(0.96);
    double log_product = 0, half_to_k = 1;
    for (int k = 1; k <= 60; ++k) {
      const double log_power = k * log_q;
      const double powers =
          log_power == 0 ? t : std::exp(log_power) * std::expm1(t * log_power) / std::expm1(log_power);
      half_to_k /= 2;
      log_product -= powers * half_to_k / k;
    }
    return std::pow(beta1, t) * std::exp(log_product);
  }
};

}  // namespace ronda
