#pragma once
#include <cmath>
#include <cstdint>

#include <ronda/core/host_device.hpp>
#include <ronda/core/number.hpp>
#include <ronda/optim/rule.hpp>
#include <ronda/optim/updater.hpp>

/// The arithmetic of an update, for the processor and for a GPU: function objects that are called once per element (or
/// as noted). `Decide` computes the decision about a step: clipping, the finite check, the loss scale, the rate and the
/// factor.
namespace ronda::update_kernels {

constexpr std::int64_t line = 16;  ///< elements per line; a line belongs to one parameter: 64 bytes of float32
constexpr std::uint16_t no_parameter = 0xffff;  ///< for lines of frozen parameters and of gaps
constexpr std::int64_t partial_sums = 1 << 15;  ///< of squares, strided: neighbouring calls read neighbours
constexpr std::int64_t sums_of_partials = 1 << 8;
constexpr std::int64_t lanes = 256;  ///< partial sums of one parameter's squares

/// A parameter in the arena, and the factors of its group.
struct Segment {
  std::int64_t offset = 0, count = 0;  ///< elements
  double rate_factor = 1, weight_decay = 0;
  int dimensions = 1;
  bool pruned = false;
};

/// The factor that reduces gradients of this 2-norm to at most `limit`: see clip_factor.
[[nodiscard]] RONDA_HOST_DEVICE inline double clip(double norm, double limit) {
  const double factor = limit / (norm + 1e-6);
  return factor > 1 ? 1 : factor;
}

/// One call computes one partial sum of squares, over every `partial_sums`-th element.
template <Number T>
struct SumSquares {
  const T* gradients;
  const std::uint16_t* parameter_of_line;
  std::int64_t count;
  double* sums;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    double sum = 0;
    for (std::int64_t at = i; at < count; at += partial_sums)
      if (parameter_of_line[at / line] != no_parameter)
        sum += static_cast<double>(as_float(gradients[at])) * as_float(gradients[at]);
    sums[i] = sum;
  }
};

/// Reduces partial sums: one call computes one of `parts` sums.
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

/// Norms of whole parameters: one call computes one of the `lanes` partial sums of a parameter.
template <Number T>
struct SquareParameters {
  const Segment* segments;
  const float* values;
  const T* gradients;
  const UpdateOutcome* outcome;
  double *value_sums, *gradient_sums;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    if (outcome->applied == 0) return;
    const Segment& segment = segments[i / lanes];
    double of_values = 0, of_gradients = 0;
    for (std::int64_t at = segment.offset + i % lanes; at < segment.offset + segment.count; at += lanes) {
      of_values += static_cast<double>(values[at]) * values[at];
      const double gradient = clipped(as_float(gradients[at]), outcome->gradient_limit);
      of_gradients += gradient * gradient;
    }
    value_sums[i] = of_values;
    gradient_sums[i] = of_gradients;
  }
};

/// The learning rates, and other settings that may change between steps. On the device of the values, so that a
/// recorded step follows changes.
struct RateTable {
  const double* rates = nullptr;  ///< of updates `first`, `first` + 1, …; the last one also for all later ones
  std::int64_t count = 0;
  std::uint64_t first = 0;
  double factor = 1;         ///< multiplies all rates
  bool keeps_zeros = false;  ///< zeros of pruned parameters stay zero
  [[nodiscard]] RONDA_HOST_DEVICE double rate(std::uint64_t update) const {
    const std::uint64_t at = update < first ? 0 : update - first;
    const auto last = static_cast<std::uint64_t>(count - 1);
    return factor * rates[at < last ? at : last];
  }
};

/// One call decides about the step.
struct Decide {
  const RateTable* table;
  double loss_scale, clip_norm, clip_value;
  const double* squared_norm;  ///< of the sums of gradients; null if neither clip_norm nor check_gradients needs it
  bool check_gradients;        ///< by the norm, which is finite if each gradient is
  LossScale* more_scale;       ///< null: 1; otherwise the gradients are checked
  const StepControl* total;
  UpdateOutcome* outcome;

  RONDA_HOST_DEVICE void operator()(std::int64_t) const {
    const std::uint64_t update = outcome->updates;
    outcome->learning_rate = table->rate(update);
    const float more = more_scale != nullptr ? more_scale->scale : 1.0F;
    // The square of a float cannot overflow a double, so the sum is finite only if every element is.
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
    outcome->gradient_factor = 1 / (total->weight * loss_scale * more);
    outcome->gradient_limit =
        clip_value > 0 ? static_cast<float>(clip_value / outcome->gradient_factor) : static_cast<float>(INFINITY);
    if (clip_norm > 0) {
      outcome->gradient_norm = std::sqrt(*squared_norm) * outcome->gradient_factor;
      outcome->gradient_factor *= clip(outcome->gradient_norm, clip_norm);
    }
    outcome->updates = update + 1;
  }
};

/// One call computes the scalars of one parameter, after Decide.
template <UpdateRule Rule>
struct Prepare {
  Rule rule;
  const Segment* segments;
  const double *value_sums, *gradient_sums;  ///< from SquareParameters; null if the rule needs no norms
  const double* update_sums;                 ///< from Propose; null if the rule has one pass
  const UpdateOutcome* outcome;
  typename Rule::Scalars* scalars;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    if (outcome->applied == 0) return;
    const Segment& segment = segments[i];
    RuleStep step{outcome->learning_rate * segment.rate_factor, segment.weight_decay, outcome->gradient_factor,
                  outcome->updates};
    step.dimensions = segment.dimensions;
    if (value_sums != nullptr) {
      double of_values = 0, of_gradients = 0, of_update = 0;
      for (std::int64_t lane = i * lanes; lane < (i + 1) * lanes; ++lane) {
        of_values += value_sums[lane];
        of_gradients += gradient_sums[lane];
        if (update_sums != nullptr) of_update += update_sums[lane];
      }
      step.value_norm = std::sqrt(of_values);
      step.gradient_norm = std::sqrt(of_gradients) * outcome->gradient_factor;
      step.update_norm = std::sqrt(of_update);
    }
    scalars[i] = rule.scalars(step);
  }
};

/// One call updates one element. All arrays begin at the start of the range.
template <UpdateRule Rule, Number T>
struct Update {
  UpdateOutcome* outcome;
  const typename Rule::Scalars* scalars;
  const std::uint16_t* parameter_of_line;
  float* values;
  const T* gradients;
  float* first_state;
  float* second_state;
  float* third_state;
  T* rounded;  ///< the values rounded for the layers; null if layers read `values`
  const Segment* segments;
  const RateTable* table;

  /// The same for the elements from `first` on, a multiple of `line`.
  [[nodiscard]] Update from(std::int64_t first) const {
    Update rest = *this;
    rest.parameter_of_line += first / line;
    rest.values += first;
    rest.gradients += first;
    if (first_state != nullptr) rest.first_state += first;
    if (second_state != nullptr) rest.second_state += first;
    if (third_state != nullptr) rest.third_state += first;
    if (rounded != nullptr) rest.rounded += first;
    return rest;
  }

  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::uint16_t parameter = parameter_of_line[i / line];
    if (outcome->applied == 0 || parameter == no_parameter) return;
    constexpr std::size_t states = Rule::states.size();
    float none = 0;
    float& first = states > 0 ? first_state[i] : none;
    float& second = states > 1 ? second_state[i] : none;
    float& third = states > 2 ? third_state[i] : none;
    const bool stays = table->keeps_zeros && segments[parameter].pruned && values[i] == 0;
    apply_rule<Rule>(scalars[parameter], values[i], clipped(as_float(gradients[i]), outcome->gradient_limit), first,
                     second, third);
    if (stays) values[i] = 0;
    if (!std::isfinite(values[i]) || (states > 0 && !std::isfinite(first)) || (states > 1 && !std::isfinite(second)) ||
        (states > 2 && !std::isfinite(third)))
      raise_flag(outcome->spoiled);
    if (rounded != nullptr) rounded[i] = as_number<T>(values[i]);
  }
};

/// The first of two passes: one call computes one of the `lanes` partial sums of a parameter.
template <TwoPassRule Rule, Number T>
struct Propose {
  Update<Rule, T> update;  ///< for the whole arena
  const Segment* segments;
  double* sums;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    const Segment& segment = segments[i / lanes];
    if (update.outcome->applied == 0 || update.parameter_of_line[segment.offset / line] == no_parameter) return;
    double of_update = 0;
    for (std::int64_t at = segment.offset + i % lanes; at < segment.offset + segment.count; at += lanes) {
      float none = 0;
      const double proposed = Rule::propose(update.scalars[i / lanes], update.values[at],
                                            clipped(as_float(update.gradients[at]), update.outcome->gradient_limit),
                                            Rule::states.size() > 0 ? update.first_state[at] : none,
                                            Rule::states.size() > 1 ? update.second_state[at] : none);
      of_update += proposed * proposed;
    }
    sums[i] = of_update;
  }
};

/// The weight of a step's values in their average; 0 if the average does not change.
[[nodiscard]] RONDA_HOST_DEVICE inline float weight_in_average(const UpdateOutcome& outcome, double decay) {
  if (outcome.applied == 0 || outcome.spoiled != 0) return 0;
  return outcome.updates == 1 ? 1 : static_cast<float>(1 - decay);
}
/// The average after one update with `value`.
[[nodiscard]] RONDA_HOST_DEVICE_INLINE float followed(float average, float value, float weight) {
  return weight == 1 ? value : average + weight * (value - average);
}

/// A call for one element.
struct Average {
  const UpdateOutcome* outcome;
  const float* values;
  float* average;
  double decay;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    const float weight = weight_in_average(*outcome, decay);
    if (weight > 0) average[i] = followed(average[i], values[i], weight);
  }
};

/// A call for one element.
struct Swap {
  float *first, *second;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    const float kept = first[i];
    first[i] = second[i];
    second[i] = kept;
  }
};

/// One call rounds one element for the layers.
template <Number T>
struct Round {
  const float* values;
  T* rounded;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const { rounded[i] = as_number<T>(values[i]); }
};

}  // namespace ronda::update_kernels
