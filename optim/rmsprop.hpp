#pragma once
#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/rule.hpp>

namespace ronda {

/// RMSprop (Tieleman and Hinton, "Neural networks for machine learning", lecture 6.5, 2012), centered as in Graves
/// ("Generating sequences with recurrent neural networks", 2013), as PyTorch's torch.optim.RMSprop computes it:
///
///     g += decay · p;  v = alpha · v + (1 - alpha) · g²
///     centered: m += (1 - alpha) · (g - m), and v - m² (at least 0) is taken for v below
///     s = g / (√v + epsilon);  p -= rate · s
///     with momentum: b = momentum · b + s;  p -= rate · b
///
/// Each combination is its own rule, so that no unused state is stored.
template <bool centered, bool with_momentum>
struct RmsProp {
  double alpha = 0.99;
  double epsilon = 1e-8;  ///< more than 0, as for Adam
  double momentum = 0;

  static constexpr auto states = [] {
    if constexpr (centered && with_momentum)
      return std::array<std::string_view, 3>{"square_avg", "momentum_buffer", "grad_avg"};
    else if constexpr (centered || with_momentum)
      return std::array<std::string_view, 2>{"square_avg", centered ? "grad_avg" : "momentum_buffer"};
    else
      return std::array<std::string_view, 1>{"square_avg"};
  }();
  static constexpr bool needs_norms = false;

  struct Scalars {
    float factor, decay, rate, alpha, one_minus_alpha, epsilon, momentum;
  };
  [[nodiscard]] RONDA_HOST_DEVICE Scalars scalars(const RuleStep& step) const {
    return {static_cast<float>(step.gradient_factor),
            static_cast<float>(step.weight_decay),
            static_cast<float>(step.learning_rate),
            static_cast<float>(alpha),
            static_cast<float>(1 - alpha),
            static_cast<float>(epsilon),
            static_cast<float>(momentum)};
  }
  RONDA_HOST_DEVICE_INLINE static void apply(const Scalars& s, float& value, float sum, float& square, float& second,
                                             float& third) {
    const float gradient = sum * s.factor + s.decay * value;
    square = s.alpha * square + s.one_minus_alpha * gradient * gradient;
    float variance = square;
    if constexpr (centered) {
      float& mean = with_momentum ? third : second;
      mean += s.one_minus_alpha * (gradient - mean);
      variance = square - mean * mean;
      variance = variance > 0 ? variance : 0;
    }
    const float normalized = gradient / (std::sqrt(variance) + s.epsilon);
    if constexpr (with_momentum) {
      second = s.momentum * second + normalized;
      value -= s.rate * second;
    } else {
      value -= s.rate * normalized;
    }
  }

  /// Only the plain rule has rows; its options select the others.
  [[nodiscard]] static std::span<const OptimizerRow> rows() noexcept;
};

using PlainRmsProp = RmsProp<false, false>;
using MomentumRmsProp = RmsProp<false, true>;
using CenteredRmsProp = RmsProp<true, false>;
using CenteredMomentumRmsProp = RmsProp<true, true>;

}  // namespace ronda
