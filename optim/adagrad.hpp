#pragma once
#include <cmath>
#include <span>

#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/rule.hpp>

namespace ronda {

/// Adagrad (Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and stochastic optimization",
/// JMLR 2011) as PyTorch's torch.optim.Adagrad computes it, in update t:
///
///     g += decay · p;  v += g²;  p -= rate / (1 + (t - 1) · lr_decay) · g / (√v + epsilon)
///
/// v is `initial` before the first update; the stored state is v - `initial`.
struct Adagrad {
  double lr_decay = 0;
  double epsilon = 1e-10;  ///< more than 0, as for Adam
  double initial = 0;      ///< PyTorch's initial_accumulator_value

  static constexpr std::array<std::string_view, 1> states{"sum"};
  static constexpr bool needs_norms = false;

  struct Scalars {
    float factor, decay, rate, epsilon, initial;
  };
  [[nodiscard]] RONDA_HOST_DEVICE Scalars scalars(const RuleStep& step) const {
    const double slower = 1 + static_cast<double>(step.step - 1) * lr_decay;
    return {static_cast<float>(step.gradient_factor), static_cast<float>(step.weight_decay),
            static_cast<float>(step.learning_rate / slower), static_cast<float>(epsilon), static_cast<float>(initial)};
  }
  RONDA_HOST_DEVICE_INLINE static void apply(const Scalars& s, float& value, float sum, float& squares, float&) {
    const float gradient = sum * s.factor + s.decay * value;
    squares += gradient * gradient;
    value -= s.rate * gradient / (std::sqrt(squares + s.initial) + s.epsilon);
  }

  [[nodiscard]] static std::span<const OptimizerRow> rows() noexcept;
};

}  // namespace ronda
