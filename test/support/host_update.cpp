#include "support/host_update.hpp"

namespace ronda::test {

using namespace device_update;

HostUpdate::HostUpdate(const Optimizer& optimizer, const OptimizerBindings& bindings, const float* gradients,
                       std::size_t count, const DeviceUpdateOptions& options, DeviceOutcome& outcome)
    : count_(static_cast<std::int64_t>(count)),
      groups_(DeviceGroups::of(optimizer, bindings, count)),
      rates_(options.rates.begin(), options.rates.end()),
      scalars_(groups_.groups.size()),
      sums_(partial_sums + sums_of_partials + 1),
      norm_asked_(options.clip_norm > 0 || options.check_gradients),
      decide_{.hyperparameters = optimizer.hyperparameters(),
              .groups = groups_.groups.data(),
              .group_count = static_cast<std::int64_t>(groups_.groups.size()),
              .rates = rates_.data(),
              .rate_count = static_cast<std::int64_t>(rates_.size()),
              .loss_scale = options.loss_scale,
              .clip_norm = options.clip_norm,
              .squared_norm = norm_asked_ ? &sums_.back() : nullptr,
              .check_gradients = options.check_gradients,
              .total = nullptr,
              .outcome = &outcome,
              .scalars = scalars_.data()},
      update_{decide_.hyperparameters.kind,
              &outcome,
              scalars_.data(),
              groups_.group_of_line.data(),
              bindings.values,
              gradients,
              bindings.states.empty() ? nullptr : bindings.states[0],
              bindings.states.size() < 2 ? nullptr : bindings.states[1]} {}

void HostUpdate::step(const StepControl& total) {
  if (norm_asked_) {
    double* const sums = sums_.data();
    const SumSquares squares{update_.gradients, update_.group_of_line, count_, sums};
    for (std::int64_t i = 0; i < partial_sums; ++i) squares(i);
    const SumPartials some{sums, partial_sums, sums_of_partials, sums + partial_sums};
    for (std::int64_t i = 0; i < sums_of_partials; ++i) some(i);
    SumPartials{sums + partial_sums, sums_of_partials, 1, sums + partial_sums + sums_of_partials}(0);
  }
  decide_.total = &total;
  decide_(0);
  for (std::int64_t i = count_; i-- > 0;) update_(i);
}

}  // namespace ronda::test
