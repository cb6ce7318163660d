#pragma once
#include <cmath>
#include <cstdint>

#include <ronda/optim/device_update.hpp>
#include <ronda/optim/rules.hpp>
#include <ronda/runtime/core/host_device.hpp>

/// What the kernels of an update compute, a call for one element each; the host runs the same code in tests.
namespace ronda::device_update {

constexpr std::int64_t line = 16;               ///< elements that belong to one parameter: 64 bytes
constexpr std::uint16_t nobody = 0xffff;        ///< the group of what is frozen, or lies between parameters
constexpr std::int64_t partial_sums = 1 << 15;  ///< of squares, each of elements far apart: neighbours read neighbours
constexpr std::int64_t sums_of_partials = 1 << 8;

struct Group {
  double rate_factor, weight_decay;
};

/// A call for one partial sum of squares, over every `partial_sums`-th element.
struct SumSquares {
  const float* gradients;
  const std::uint16_t* group_of_line;
  std::int64_t count;
  double* sums;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    double sum = 0;
    for (std::int64_t at = i; at < count; at += partial_sums)
      if (group_of_line[at / line] != nobody) sum += static_cast<double>(gradients[at]) * gradients[at];
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

/// One call decides about the step, and works out what each group's elements need.
struct Decide {
  rules::Hyperparameters hyperparameters;
  const Group* groups;
  std::int64_t group_count;
  const double* rates;
  std::int64_t rate_count;
  double loss_scale, clip_norm;
  const double* squared_norm;  ///< null where neither of these asks for it
  bool check_gradients;
  const StepControl* total;
  DeviceOutcome* outcome;
  rules::Scalars* scalars;  ///< by group

  RONDA_HOST_DEVICE void operator()(std::int64_t) const {
    const std::uint64_t update = outcome->updates;
    const auto last = static_cast<std::uint64_t>(rate_count - 1);
    outcome->learning_rate = rates[update < last ? update : last];
    // A square of a float cannot overflow a double: the sum tells of every element.
    const bool finite = std::isfinite(total->loss) && (!check_gradients || std::isfinite(*squared_norm));
    outcome->gradient_norm = 0;
    outcome->finite = finite ? 1 : 0;
    outcome->applied = finite && total->weight > 0 ? 1 : 0;
    if (outcome->applied == 0) return;
    double factor = 1 / (total->weight * loss_scale);
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

/// A call for one element.
struct Update {
  rules::Kind kind;
  const DeviceOutcome* outcome;
  const rules::Scalars* scalars;
  const std::uint16_t* group_of_line;
  float* values;
  const float* gradients;
  float* first_state;
  float* second_state;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::uint16_t group = group_of_line[i / line];
    if (outcome->applied == 0 || group == nobody) return;
    switch (kind) {
      case rules::Kind::sgd: return rules::sgd(scalars[group], values[i], gradients[i]);
      case rules::Kind::momentum: return rules::momentum(scalars[group], values[i], gradients[i], first_state[i]);
      case rules::Kind::adam:
        return rules::adam(scalars[group], values[i], gradients[i], first_state[i], second_state[i]);
    }
  }
};

}  // namespace ronda::device_update
