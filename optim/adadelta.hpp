#pragma once
#include <cmath>
#include <span>

#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/rule.hpp>

namespace ronda {

/// Adadelta (Zeiler, "ADADELTA: an adaptive learning rate method", 2012) as PyTorch's torch.optim.Adadelta computes it:
///
///     g += decay · p;  v = rho · v + (1 - rho) · g²
///     s = √(a + epsilon) / √(v + epsilon) · g;  a = rho · a + (1 - rho) · s²;  p -= rate · s
struct Adadelta {
  double rho = 0.9;
  double epsilon = 1e-6;

  static constexpr std::array<std::string_view, 2> states{"square_avg", "acc_delta"};
  static constexpr bool needs_norms = false;

  struct Scalars {
    float factor, decay, rate, rho, one_minus_rho, epsilon;
  };
  [[nodiscard]] RONDA_HOST_DEVICE Scalars scalars(const RuleStep& step) const {
    return {static_cast<float>(step.gradient_factor),
            static_cast<float>(step.weight_decay),
            static_cast<float>(step.learning_rate),
            static_cast<float>(rho),
            static_cast<float>(1 - rho),
            static_cast<float>(epsilon)};
  }
  RONDA_HOST_DEVICE_INLINE static void apply(const Scalars& s, float& value, float sum, float& square, float& moved) {
    const float gradient = sum * s.factor + s.decay * value;
    square = s.rho * square + s.one_minus_rho * gradient * gradient;
    const float change = std::sqrt(moved + s.epsilon) / std::sqrt(square + s.epsilon) * gradient;
    moved = s.rho * moved + s.one_minus_rho * change * change;
    value -= s.rate * change;
  }

  [[nodiscard]] static std::span<const OptimizerRow> rows() noexcept;
};

}  // namespace ronda
