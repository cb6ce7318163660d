#pragma once
#include <cmath>
#include <span>

#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/rule.hpp>

namespace ronda {

/// Whether weight decay is added to the gradient (L2 regularisation, Adam) or applied to the parameter directly (AdamW:
/// Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019).
enum class Decay : std::uint8_t { in_gradient, decoupled };

/// Adam (Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015) as PyTorch's torch.optim.Adam and
/// AdamW compute it, in update t:
///
///     in_gradient: g += decay · p;  decoupled: p *= 1 - rate · decay
///     m += (1 - beta1) · (g - m);  v = beta2 · v + (1 - beta2) · g²
///     p -= rate / (1 - beta1^t) · m / (√v / √(1 - beta2^t) + epsilon)
struct Adam {
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;  ///< more than 0, so that elements without gradients (padding) do not change
  Decay decay = Decay::in_gradient;

  static constexpr std::array<std::string_view, 2> states{"exp_avg", "exp_avg_sq"};
  static constexpr bool needs_norms = false;

  struct Scalars {
    float factor;
    float decay;  ///< times p: added to the gradient
    float keep;   ///< factor of p, applied first
    float rate;   ///< divided by m's bias correction
    float one_minus_beta1, beta2, one_minus_beta2;
    float v_root;  ///< root of v's bias correction
    float epsilon;
  };
  [[nodiscard]] RONDA_HOST_DEVICE Scalars scalars(const RuleStep& step) const {
    const bool decoupled = decay == Decay::decoupled;
    const auto t = static_cast<double>(step.step);
    return {static_cast<float>(step.gradient_factor),
            decoupled ? 0.0F : static_cast<float>(step.weight_decay),
            decoupled ? static_cast<float>(1 - step.learning_rate * step.weight_decay) : 1.0F,
            static_cast<float>(step.learning_rate / (1 - std::pow(beta1, t))),
            static_cast<float>(1 - beta1),
            static_cast<float>(beta2),
            static_cast<float>(1 - beta2),
            static_cast<float>(std::sqrt(1 - std::pow(beta2, t))),
            static_cast<float>(epsilon)};
  }
  RONDA_HOST_DEVICE_INLINE static void apply(const Scalars& s, float& value, float sum, float& mean, float& square) {
    const float kept = value * s.keep;
    const float gradient = sum * s.factor + s.decay * kept;
    const float m = mean + s.one_minus_beta1 * (gradient - mean);
    const float v = s.beta2 * square + s.one_minus_beta2 * gradient * gradient;
    mean = m;
    square = v;
    value = kept - s.rate * m / (std::sqrt(v) / s.v_root + s.epsilon);
  }

  [[nodiscard]] static std::span<const OptimizerRow> rows() noexcept;
};

}  // namespace ronda
