#include <ronda/optim/sgd.hpp>
#include <ronda/runtime/core/multiversion.hpp>

#include <array>

namespace ronda {
namespace {

RONDA_MULTIVERSION void descend(float* __restrict values, const float* __restrict gradients, std::size_t count,
                                float factor, float decay, float rate) {
  for (std::size_t i = 0; i < count; ++i) {
    const float gradient = gradients[i] * factor + decay * values[i];
    values[i] -= rate * gradient;
  }
}

/// The two kinds of momentum are one formula: p -= rate · (own · g + carried · v).
struct MomentumScalars {
  float factor, decay, rate, momentum, own, carried;
};

RONDA_MULTIVERSION void descend_with_momentum(float* __restrict values, const float* __restrict gradients,
                                              float* __restrict velocities, std::size_t count, MomentumScalars s) {
  for (std::size_t i = 0; i < count; ++i) {
    const float gradient = gradients[i] * s.factor + s.decay * values[i];
    const float velocity = s.momentum * velocities[i] + gradient;
    velocities[i] = velocity;
    values[i] -= s.rate * (s.own * gradient + s.carried * velocity);
  }
}

}  // namespace

void Sgd::update(const Elements& e, const Scalars& s) const noexcept {
  descend(e.values, e.gradients, e.count, static_cast<float>(s.gradient_factor), static_cast<float>(s.weight_decay),
          static_cast<float>(s.learning_rate));
}

std::span<const std::string_view> Momentum::states() const noexcept {
  static constexpr std::array<std::string_view, 1> names{"momentum_buffer"};
  return names;
}

void Momentum::update(const Elements& e, const Scalars& s) const noexcept {
  const auto momentum = static_cast<float>(momentum_);
  const MomentumScalars scalars{static_cast<float>(s.gradient_factor),
                                static_cast<float>(s.weight_decay),
                                static_cast<float>(s.learning_rate),
                                momentum,
                                nesterov_ ? 1.0F : 0.0F,
                                nesterov_ ? momentum : 1.0F};
  descend_with_momentum(e.values, e.gradients, e.first_state, e.count, scalars);
}

}  // namespace ronda
