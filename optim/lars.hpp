#pragma once
#include <span>

#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/rule.hpp>

namespace ronda {

/// Momentum with a rate per parameter, for large batches: LARS (You, Gitman and Ginsburg, "Large batch training of
/// convolutional networks", 2017, with the rate outside of the velocity, as PyTorch has it):
///
///     λ = trust · ‖p‖ / (‖g‖ + decay · ‖p‖);  v = momentum · v + λ · (g + decay · p);  p -= rate · v
///
/// λ is 1 for biases and other vectors, as is usual, and if a norm is 0. g is the mean gradient over all ranks, so
/// every rank computes the same λ.
struct Lars {
  double momentum = 0.9, trust = 0.001;

  static constexpr std::array<std::string_view, 1> states{"momentum_buffer"};
  static constexpr bool needs_norms = true;

  struct Scalars {
    float factor, decay, rate, momentum, trust;  ///< trust: λ
  };
  [[nodiscard]] RONDA_HOST_DEVICE Scalars scalars(const RuleStep& step) const {
    const bool scaled = step.dimensions > 1 && step.value_norm > 0 && step.gradient_norm > 0;
    const double ratio = scaled ? step.value_norm / (step.gradient_norm + step.weight_decay * step.value_norm) : 1;
    return {static_cast<float>(step.gradient_factor), static_cast<float>(step.weight_decay),
            static_cast<float>(step.learning_rate), static_cast<float>(momentum),
            static_cast<float>(scaled ? trust * ratio : 1)};
  }
  RONDA_HOST_DEVICE_INLINE static void apply(const Scalars& s, float& value, float sum, float& velocity, float&) {
    const float gradient = sum * s.factor + s.decay * value;
    velocity = s.momentum * velocity + s.trust * gradient;
    value -= s.rate * velocity;
  }

  [[nodiscard]] static std::span<const OptimizerRow> rows() noexcept;
};

}  // namespace ronda
