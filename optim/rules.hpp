#pragma once
#include <cmath>
#include <cstdint>

#include <ronda/core/host_device.hpp>

/// The arithmetic of the update rules, one element at a time: the processor's loops and a GPU's kernel are made of it,
/// so both give the same bits where their square roots and divisions are IEEE's.
namespace ronda::rules {

enum class Kind : std::uint8_t { sgd, momentum, adam };

/// What does not change from step to step.
struct Hyperparameters {
  Kind kind = Kind::sgd;
  double weight_decay = 0;  ///< for groups that do not say
  double momentum = 0;
  bool nesterov = false;
  double beta1 = 0, beta2 = 0, epsilon = 0;
  bool decoupled = false;  ///< Adam's decay: AdamW
};

/// What is the same for all elements of a group in one step, as float32.
struct Scalars {
  float factor;                  ///< of the gradient
  float decay;                   ///< added to the gradient, times p
  float keep;                    ///< p is multiplied with it first
  float rate;                    ///< Adam's is divided by m's bias correction
  float momentum, own, carried;  ///< the two kinds of momentum are one formula: p -= rate · (own · g + carried · v)
  float one_minus_beta1, beta2, one_minus_beta2;
  float v_root;  ///< root of v's bias correction
  float epsilon;
};

/// @param step  updates so far + 1
[[nodiscard]] RONDA_HOST_DEVICE_INLINE Scalars scalars_of(const Hyperparameters& h, double learning_rate,
                                                          double weight_decay, double gradient_factor,
                                                          std::uint64_t step) {
  Scalars s{};
  s.factor = static_cast<float>(gradient_factor);
  s.decay = h.decoupled ? 0.0F : static_cast<float>(weight_decay);
  s.keep = h.decoupled ? static_cast<float>(1 - learning_rate * weight_decay) : 1.0F;
  s.rate = static_cast<float>(learning_rate);
  if (h.kind == Kind::momentum) {
    s.momentum = static_cast<float>(h.momentum);
    s.own = h.nesterov ? 1.0F : 0.0F;
    s.carried = h.nesterov ? s.momentum : 1.0F;
  }
  if (h.kind == Kind::adam) {
    const auto t = static_cast<double>(step);
    s.one_minus_beta1 = static_cast<float>(1 - h.beta1);
    s.beta2 = static_cast<float>(h.beta2);
    s.one_minus_beta2 = static_cast<float>(1 - h.beta2);
    s.rate = static_cast<float>(learning_rate / (1 - std::pow(h.beta1, t)));
    s.v_root = static_cast<float>(std::sqrt(1 - std::pow(h.beta2, t)));
    s.epsilon = static_cast<float>(h.epsilon);
  }
  return s;
}

RONDA_HOST_DEVICE_INLINE void sgd(const Scalars& s, float& value, float sum) {
  const float gradient = sum * s.factor + s.decay * value;
  value -= s.rate * gradient;
}

RONDA_HOST_DEVICE_INLINE void momentum(const Scalars& s, float& value, float sum, float& velocity) {
  const float gradient = sum * s.factor + s.decay * value;
  const float moved = s.momentum * velocity + gradient;
  velocity = moved;
  value -= s.rate * (s.own * gradient + s.carried * moved);
}

RONDA_HOST_DEVICE_INLINE void adam(const Scalars& s, float& value, float sum, float& mean, float& square) {
  const float kept = value * s.keep;
  const float gradient = sum * s.factor + s.decay * kept;
  const float m = mean + s.one_minus_beta1 * (gradient - mean);
  const float v = s.beta2 * square + s.one_minus_beta2 * gradient * gradient;
  mean = m;
  square = v;
  value = kept - s.rate * m / (std::sqrt(v) / s.v_root + s.epsilon);
}

/// What gradients of this 2-norm are multiplied with so that it becomes at most `clip`: see clip_factor.
[[nodiscard]] RONDA_HOST_DEVICE_INLINE double clip(double norm, double limit) {
  const double factor = limit / (norm + 1e-6);
  return factor > 1 ? 1 : factor;
}

}  // namespace ronda::rules
