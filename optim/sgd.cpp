#include <ronda/optim/sgd.hpp>
#include <ronda/optim/update_loop.hpp>
#include <ronda/runtime/core/multiversion.hpp>

#include <array>

namespace ronda {
namespace {

RONDA_MULTIVERSION void descend(const ArenaPart& part, float factor, float decay, float rate) {
  update_each<0>(part, [=](float& value, float summed, float&, float&) RONDA_INLINE {
    const float gradient = summed * factor + decay * value;
    value -= rate * gradient;
  });
}

/// The two kinds of momentum are one formula: p -= rate · (own · g + carried · v).
struct MomentumScalars {
  float factor, decay, rate, momentum, own, carried;
};

RONDA_MULTIVERSION void descend_with_momentum(const ArenaPart& part, MomentumScalars s) {
  update_each<1>(part, [=](float& value, float summed, float& velocity, float&) RONDA_INLINE {
    const float gradient = summed * s.factor + s.decay * value;
    velocity = s.momentum * velocity + gradient;
    value -= s.rate * (s.own * gradient + s.carried * velocity);
  });
}

}  // namespace

void Sgd::update(const ArenaPart& part, const Scalars& s) const noexcept {
  descend(part, static_cast<float>(s.gradient_factor), static_cast<float>(s.weight_decay),
          static_cast<float>(s.learning_rate));
}

std::span<const std::string_view> Momentum::states() const noexcept {
  static constexpr std::array<std::string_view, 1> names{"momentum_buffer"};
  return names;
}

void Momentum::update(const ArenaPart& part, const Scalars& s) const noexcept {
  const auto momentum = static_cast<float>(momentum_);
  const MomentumScalars scalars{static_cast<float>(s.gradient_factor),
                                static_cast<float>(s.weight_decay),
                                static_cast<float>(s.learning_rate),
                                momentum,
                                nesterov_ ? 1.0F : 0.0F,
                                nesterov_ ? momentum : 1.0F};
  descend_with_momentum(part, scalars);
}

}  // namespace ronda
