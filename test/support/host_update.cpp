#include "support/host_update.hpp"

namespace ronda::test {

using namespace device_update;

HostUpdate::HostUpdate(const Optimizer& optimizer, const OptimizerBindings& bindings, const LayerArenas& layers,
                       std::size_t count, const DeviceUpdateOptions& options, DeviceOutcome& outcome)
    : count_(static_cast<std::int64_t>(count)),
      bindings_(bindings),
      layers_(layers),
      groups_(DeviceGroups::of(optimizer, bindings, count)),
      rates_(options.rates.begin(), options.rates.end()),
      scalars_(groups_.groups.size()),
      sums_(partial_sums + sums_of_partials + 1),
      norm_asked_(options.needs_norm()),
      decide_{.hyperparameters = optimizer.hyperparameters(),
              .groups = groups_.groups.data(),
              .group_count = static_cast<std::int64_t>(groups_.groups.size()),
              .rates = rates_.data(),
              .rate_count = static_cast<std::int64_t>(rates_.size()),
              .loss_scale = options.loss_scale,
              .clip_norm = options.clip_norm,
              .squared_norm = norm_asked_ ? &sums_.back() : nullptr,
              .check_gradients = options.looks_at_gradients(),
              .more_scale = options.more_scale,
              .total = nullptr,
              .outcome = &outcome,
              .scalars = scalars_.data()} {}

void HostUpdate::step(const StepControl& total) {
  with_number(layers_.dtype, [&]<class T>(std::type_identity<T>) {
    if (norm_asked_) sum_squares<T>();
    decide_.total = &total;
    decide_(0);
    update<T>();
  });
}

template <Number T>
void HostUpdate::sum_squares() {
  double* const sums = sums_.data();
  const SumSquares<T> squares{reinterpret_cast<const T*>(layers_.gradients), groups_.group_of_line.data(), count_,
                              sums};
  for (std::int64_t i = 0; i < partial_sums; ++i) squares(i);
  const SumPartials some{sums, partial_sums, sums_of_partials, sums + partial_sums};
  for (std::int64_t i = 0; i < sums_of_partials; ++i) some(i);
  SumPartials{sums + partial_sums, sums_of_partials, 1, sums + partial_sums + sums_of_partials}(0);
}

template <Number T>
void HostUpdate::update() {
  const auto state = [&](std::size_t i) { return i < bindings_.states.size() ? bindings_.states[i] : nullptr; };
  const Update<T> body{decide_.hyperparameters.kind,
                       decide_.outcome,
                       scalars_.data(),
                       groups_.group_of_line.data(),
                       bindings_.values,
                       reinterpret_cast<const T*>(layers_.gradients),
                       state(0),
                       state(1),
                       reinterpret_cast<T*>(layers_.values)};
  for (std::int64_t i = count_; i-- > 0;) body(i);
}

void HostUpdate::round_values() {
  if (layers_.values == nullptr) return;
  with_number(layers_.dtype, [&]<class T>(std::type_identity<T>) {
    const Round<T> body{bindings_.values, reinterpret_cast<T*>(layers_.values)};
    for (std::int64_t i = count_; i-- > 0;) body(i);
  });
}

}  // namespace ronda::test
