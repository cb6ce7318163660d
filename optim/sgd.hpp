#pragma once
#include <span>

#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/rule.hpp>

namespace ronda {

/// p -= rate · (g + decay · p). PyTorch's torch.optim.SGD.
struct Sgd {
  static constexpr std::array<std::string_view, 0> states{};
  static constexpr bool needs_norms = false;

  struct Scalars {
    float factor, decay, rate;
  };
  [[nodiscard]] RONDA_HOST_DEVICE Scalars scalars(const RuleStep& step) const {
    return {static_cast<float>(step.gradient_factor), static_cast<float>(step.weight_decay),
            static_cast<float>(step.learning_rate)};
  }
  RONDA_HOST_DEVICE_INLINE static void apply(const Scalars& s, float& value, float sum, float&, float&) {
    const float gradient = sum * s.factor + s.decay * value;
    value -= s.rate * gradient;
  }

  [[nodiscard]] static std::span<const OptimizerRow> rows() noexcept;
};

/// PyTorch's torch.optim.SGD with momentum, without dampening (Sutskever et al., "On the importance of initialization
/// and momentum in deep learning", ICML 2013, with the rate outside of the velocity):
///
///     g += decay · p;  v = momentum · v + g;  p -= rate · v;  nesterov: p -= rate · (g + momentum · v)
///
/// PyTorch starts with v = g; so do we, since v is 0 before the first step.
struct Momentum {
  double momentum = 0.9;
  bool nesterov = false;

  static constexpr std::array<std::string_view, 1> states{"momentum_buffer"};
  static constexpr bool needs_norms = false;

  struct Scalars {
    float factor, decay, rate;
    float momentum, own, carried;  ///< with or without nesterov: p -= rate · (own · g + carried · v)
  };
  [[nodiscard]] RONDA_HOST_DEVICE Scalars scalars(const RuleStep& step) const {
    const auto m = static_cast<float>(momentum);
    return {static_cast<float>(step.gradient_factor),
            static_cast<float>(step.weight_decay),
            static_cast<float>(step.learning_rate),
            m,
            nesterov ? 1.0F : 0.0F,
            nesterov ? m : 1.0F};
  }
  RONDA_HOST_DEVICE_INLINE static void apply(const Scalars& s, float& value, float sum, float& velocity, float&) {
    const float gradient = sum * s.factor + s.decay * value;
    const float moved = s.momentum * velocity + gradient;
    velocity = moved;
    value -= s.rate * (s.own * gradient + s.carried * moved);
  }

  [[nodiscard]] static std::span<const OptimizerRow> rows() noexcept;
};

}  // namespace ronda
