#pragma once
#include <cmath>
#include <cstdint>

#include <ronda/core/host_device.hpp>
#include <ronda/core/number.hpp>
#include <ronda/optim/rules.hpp>
#include <ronda/optim/updater.hpp>

/// The arithmetic of an update, a call for one element each, on the processor and on a GPU. `Decide` is the one text of
/// what becomes of a step: clipping, the finite check, the loss scale, the rate and the factor.
namespace ronda::update_kernels {

constexpr std::int64_t line = 16;               ///< elements that belong to one parameter: 64 bytes of float32
constexpr std::uint16_t no_group = 0xffff;      ///< of a frozen parameter, or of a gap between parameters
constexpr std::int64_t partial_sums = 1 << 15;  ///< of squares, each of elements far apart: neighbours read neighbours
constexpr std::int64_t sums_of_partials = 1 << 8;

struct Group {
  double rate_factor, weight_decay;
};

/// A call for one partial sum of squares, over every `partial_sums`-th element.
template <Number T>
struct SumSquares {
  const T* gradients;
  const std::uint16_t* group_of_line;
  std::int64_t count;
  double* sums;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    double sum = 0;
    for (std::int64_t at = i; at < count; at += partial_sums)
      if (group_of_line[at / line] != no_group)
        sum += static_cast<double>(as_float(gradients[at])) * as_float(gradients[at]);
    sums[i] = sum;
  }
};

/// Sums of sums: a call for one of `parts`.
struct SumPartials {
  const double* from;
  std::int64_t count, parts;
  double* sums;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    double sum = 0;
    for (std::int64_t at = i; at < count; at += parts) sum += from[at];
    sums[i] = sum;
  }
};

/// The loss scale after a step whose loss was finite.
[[nodiscard]] RONDA_HOST_DEVICE inline LossScale next(LossScale scale, bool overflowed) {
  if (overflowed) return {scale.scale / 2, 0};
  if (scale.good_steps + 1 < LossScale::interval) return {scale.scale, scale.good_steps + 1};
  const float doubled = scale.scale * 2;
  return {std::isfinite(doubled) ? doubled : scale.scale, 0};
}

/// One call decides about the step, and works out each group's scalars.
struct Decide {
  rules::Hyperparameters hyperparameters;
  const Group* groups;
  std::int64_t group_count;
  const double* rates;
  std::int64_t rate_count;
  double loss_scale, clip_norm;
  const double* squared_norm;  ///< of the gradients' sums; null where neither of these asks for it
  bool check_gradients;        ///< by the norm, which is finite where each gradient is
  LossScale* more_scale;       ///< null: 1; otherwise the gradients are checked
  const StepControl* total;
  UpdateOutcome* outcome;
  rules::Scalars* scalars;  ///< by group

  RONDA_HOST_DEVICE void operator()(std::int64_t) const {
    const std::uint64_t update = outcome->updates;
    const auto last = static_cast<std::uint64_t>(rate_count - 1);
    outcome->learning_rate = rates[update < last ? update : last];
    const float more = more_scale != nullptr ? more_scale->scale : 1.0F;
    // A square of a float cannot overflow a double: the sum tells of every element.
    const bool loss_finite = std::isfinite(total->loss);
    const bool gradients_finite = !check_gradients || std::isfinite(*squared_norm);
    const bool overflowed = more_scale != nullptr && loss_finite && !gradients_finite && more > LossScale::smallest;
    const bool finite = loss_finite && (gradients_finite || overflowed);
    outcome->gradient_norm = 0;
    outcome->finite = finite ? 1 : 0;
    outcome->spoiled = 0;
    outcome->overflowed = overflowed ? 1 : 0;
    outcome->applied = finite && !overflowed && total->weight > 0 ? 1 : 0;
    const bool counts = overflowed || outcome->applied != 0;
    if (more_scale != nullptr && counts) *more_scale = next(*more_scale, overflowed);
    outcome->loss_scale = more_scale != nullptr ? more_scale->scale : 1.0F;
    if (outcome->applied == 0) return;
    double factor = 1 / (total->weight * loss_scale * more);
    if (clip_norm > 0) {
      outcome->gradient_norm = std::sqrt(*squared_norm) * factor;
      factor *= rules::clip(outcome->gradient_norm, clip_norm);
    }
    outcome->updates = update + 1;
    for (std::int64_t g = 0; g < group_count; ++g)
      scalars[g] = rules::scalars_of(hyperparameters, outcome->learning_rate * groups[g].rate_factor,
                                     groups[g].weight_decay, factor, update + 1);
  }
};

/// A call for one element. Arrays begin with the range.
template <Number T>
struct Update {
  rules::Kind kind;
  UpdateOutcome* outcome;
  const rules::Scalars* scalars;
  const std::uint16_t* group_of_line;  ///< of the range's first line
  float* values;
  const T* gradients;
  float* first_state;
  float* second_state;
  T* rounded;  ///< the values as layers read them; null where they read `values`

  /// The same from element `first` on, a multiple of `line`.
  [[nodiscard]] Update from(std::int64_t first) const {
    Update rest = *this;
    rest.group_of_line += first / line;
    rest.values += first;
    rest.gradients += first;
    if (first_state != nullptr) rest.first_state += first;
    if (second_state != nullptr) rest.second_state += first;
    if (rounded != nullptr) rest.rounded += first;
    return rest;
  }
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::uint16_t group = group_of_line[i / line];
    if (outcome->applied == 0 || group == no_group) return;
    const float gradient = as_float(gradients[i]);
    switch (kind) {
      case rules::Kind::sgd: rules::sgd(scalars[group], values[i], gradient); break;
      case rules::Kind::momentum: rules::momentum(scalars[group], values[i], gradient, first_state[i]); break;
      case rules::Kind::adam: rules::adam(scalars[group], values[i], gradient, first_state[i], second_state[i]); break;
    }
    if (!std::isfinite(values[i]) || (second_state != nullptr && !std::isfinite(second_state[i]))) outcome->spoiled = 1;
    if (rounded != nullptr) rounded[i] = as_number<T>(values[i]);
  }
};

/// A call for one element: what layers read.
template <Number T>
struct Round {
  const float* values;
  T* rounded;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const { rounded[i] = as_number<T>(values[i]); }
};

}  // namespace ronda::update_kernels
