#pragma once
#include <cmath>
#include <span>

#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/rule.hpp>

namespace ronda {

/// Adam with a rate per parameter, for large batches: LAMB (You et al., "Large batch optimization for deep learning:
/// training BERT in 76 minutes", ICLR 2020, algorithm 2), in update t:
///
///     m += (1 - beta1) · (g - m);  v = beta2 · v + (1 - beta2) · g²
///     u = m / (1 - beta1^t) / (√(v / (1 - beta2^t)) + epsilon) + decay · p
///     p -= rate · ‖p‖ / ‖u‖ · u
///
/// The ratio of norms is 1 for biases and other vectors, as in the authors' code, and if a norm is 0. Every rank
/// computes all of u from the mean gradient over all ranks, and so gets the same ratio.
struct Lamb {
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-6;  ///< more than 0, as for Adam

  static constexpr std::array<std::string_view, 2> states{"exp_avg", "exp_avg_sq"};
  static constexpr bool needs_norms = true;

  struct Scalars {
    float factor, decay, one_minus_beta1, beta2, one_minus_beta2;
    float m_scale;  ///< m's bias correction
    float v_root;   ///< root of v's bias correction
    float epsilon;
    float rate;  ///< times the ratio
  };
  [[nodiscard]] RONDA_HOST_DEVICE Scalars scalars(const RuleStep& step) const {
    const bool scaled = step.dimensions > 1 && step.value_norm > 0 && step.update_norm > 0;
    const auto t = static_cast<double>(step.step);
    return {static_cast<float>(step.gradient_factor),
            static_cast<float>(step.weight_decay),
            static_cast<float>(1 - beta1),
            static_cast<float>(beta2),
            static_cast<float>(1 - beta2),
            static_cast<float>(1 / (1 - std::pow(beta1, t))),
            static_cast<float>(std::sqrt(1 - std::pow(beta2, t))),
            static_cast<float>(epsilon),
            static_cast<float>(step.learning_rate * (scaled ? step.value_norm / step.update_norm : 1))};
  }
  RONDA_HOST_DEVICE_INLINE static float propose(const Scalars& s, float value, float sum, float& mean, float& square) {
    const float gradient = sum * s.factor;
    mean += s.one_minus_beta1 * (gradient - mean);
    square = s.beta2 * square + s.one_minus_beta2 * gradient * gradient;
    return update(s, value, mean, square);
  }
  RONDA_HOST_DEVICE_INLINE static void apply(const Scalars& s, float& value, float, float& mean, float& square) {
    value -= s.rate * update(s, value, mean, square);
  }

  [[nodiscard]] static std::span<const OptimizerRow> rows() noexcept;

 private:
  RONDA_HOST_DEVICE_INLINE static float update(const Scalars& s, float value, float mean, float square) {
    return s.m_scale * mean / (std::sqrt(square) / s.v_root + s.epsilon) + s.decay * value;
  }
};

}  // namespace ronda
