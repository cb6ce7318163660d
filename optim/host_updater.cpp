#include <ronda/core/denormals.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/core/number.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/optim/rules.hpp>
#include <ronda/optim/update_loop.hpp>
#include <ronda/optim/updater.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace ronda {
namespace {

RONDA_MULTIVERSION void follow_values(const float* __restrict values, float* __restrict average, std::size_t count,
                                      float weight) {
  for (std::size_t i = 0; i < count; ++i) average[i] = update_kernels::followed(average[i], values[i], weight);
}

/// A range of the values, and what layers have of it.
LayerRange layer_range(const LayerArenas& layers, const ArenaRange& range, const float* values) {
  const auto first = static_cast<std::size_t>(range.values - values);
  return {range.values,       layers.gradients + first * size_of(layers.dtype),
          layers.dtype,       layers.values + first * size_of(layers.layer_dtype),
          layers.layer_dtype, range.count};
}

/// By the optimizer's own loops, for gradients in float32.
class HostUpdater final : public Updater {
 public:
  HostUpdater(Optimizer& optimizer, const OptimizerBindings& bindings, const LayerArenas& layers, std::size_t count,
              const UpdaterOptions& options)
      : optimizer_(optimizer),
        schedule_(options.schedule),
        arena_{bindings.values, reinterpret_cast<const float*>(layers.gradients), count},
        sums_(options.sums.value_or(arena_)),
        layers_(layers),
        average_(options.average),
        average_decay_(options.average_decay),
        averaged_(options.averaged.value_or(Range{0, count})),
        parts_(options.parts),
        decide_{.table = &table_,
                .loss_scale = options.loss_scale,
                .clip_norm = options.clip_norm,
                .clip_value = options.clip_value,
                .squared_norm = &squared_norm_,
                .check_gradients = options.checks_gradients(),
                .more_scale = options.more_scale,
                .total = nullptr,
                .outcome = &outcome_} {}
  HostUpdater(const HostUpdater&) = delete;  // its kernel knows its members

  void decide(const StepControl* total, Stream& stream) override {
    rate_ = schedule_.rate(outcome_.updates - std::min(outcome_.updates, first_update_));
    if (decide_.clip_norm > 0 || decide_.check_gradients) squared_norm_ = of_all_parts(norm_or_finiteness(stream));
    decide_.total = total;
    decide_(0);
    if (outcome_.applied != 0 && optimizer_.needs_norms()) optimizer_.measure(arena_.gradients, scalars(), stream);
  }
  void apply(const ArenaRange& range, Stream& stream) override {
    if (outcome_.applied == 0) return;
    const bool finite = layers_.values == nullptr
                            ? optimizer_.step(range, scalars(), stream)
                            : optimizer_.step(layer_range(layers_, range, arena_.values), scalars(), stream);
    if (!finite) outcome_.spoiled = 1;
  }
  [[nodiscard]] bool reads_all_gradients() const noexcept override {
    return decide_.clip_norm > 0 || decide_.check_gradients || optimizer_.needs_norms();
  }
  void average(Stream& stream) override {
    const float weight = average_ != nullptr ? update_kernels::weight_in_average(outcome_, average_decay_) : 0;
    if (weight == 0) return;
    const auto follow = [&](Range part) {
      const DenormalScope flushing(true);
      const std::size_t first = averaged_.begin + part.begin;
      follow_values(arena_.values + first, average_ + first, part.size(), weight);
    };
    parallel_for(threads_for(averaged_.size(), stream), averaged_.size(), follow,
                 static_cast<std::size_t>(update_kernels::line));
  }
  void swap_average(Stream&) override {
    if (average_ != nullptr)
      std::swap_ranges(average_ + averaged_.begin, average_ + averaged_.end, arena_.values + averaged_.begin);
  }
  void round_values(Stream& stream) override {
    if (layers_.values == nullptr) return;  // layers read them as they are
    with_number(layers_.layer_dtype, [&]<class T>(std::type_identity<T>) {
      if constexpr (!std::same_as<T, float>)
        parallel_for(threads_for(arena_.count, stream), arena_.count, [&](Range part) {
          convert(arena_.values + part.begin, reinterpret_cast<T*>(layers_.values) + part.begin, part.size());
        });
    });
  }
  [[nodiscard]] UpdateOutcome* outcome() noexcept override { return &outcome_; }
  void set_updates(std::uint64_t updates, Stream&) override { outcome_.updates = updates; }
  void set_schedule(const Schedule& schedule, Stream&) override {
    schedule_ = schedule;
    first_update_ = outcome_.updates;
  }
  void set_rate_factor(double factor, Stream&) override { table_.factor = factor; }
  void set_keeps_zeros(bool keeps, Stream&) override { table_.keeps_zeros = keeps; }

 private:
  [[nodiscard]] StepScalars scalars() const {
    return {outcome_.learning_rate, outcome_.gradient_factor, outcome_.updates, outcome_.gradient_limit,
            table_.keeps_zeros};
  }
  /// Where the norm itself is not asked for, a number that is finite where all gradients are: a faster pass.
  [[nodiscard]] double norm_or_finiteness(Stream& stream) {
    if (decide_.clip_norm > 0) return optimizer_.squared_norm(sums_, stream);
    return optimizer_.gradients_are_finite(sums_, stream) ? 0 : std::numeric_limits<double>::quiet_NaN();
  }
  [[nodiscard]] double of_all_parts(double mine) { return parts_ != nullptr ? parts_->sum(mine) : mine; }

  Optimizer& optimizer_;
  Schedule schedule_;
  ArenaRange arena_;
  ArenaRange sums_;  ///< of gradients, that are here
  LayerArenas layers_;
  float* average_;
  double average_decay_;
  Range averaged_;
  SumOverParts* parts_;
  std::uint64_t first_update_ = 0;
  double rate_ = 0, squared_norm_ = 0;
  update_kernels::RateTable table_{.rates = &rate_, .count = 1};
  UpdateOutcome outcome_;
  update_kernels::Decide decide_;
};

struct HostLaunch {
  template <class Body>
  static void for_each(Stream& stream, std::int64_t count, const Body& body) {
    parallel_for(
        stream.threads(), static_cast<std::size_t>(count),
        [&](Range part) {
          const DenormalScope flushing(true);
          for (std::size_t i = part.begin; i < part.end; ++i) body(static_cast<std::int64_t>(i));
        },
        static_cast<std::size_t>(update_kernels::line));
  }
};

/// For gradients of a half type: decides by the kernels of a GPU, so with its bits, and updates by the optimizer's own
/// loops, which are the faster ones here and have the same bits.
template <Number T>
class HalfUpdater final : public KernelDecision<T, HostLaunch> {
 public:
  HalfUpdater(DeviceContext& context, Optimizer& optimizer, const OptimizerBindings& bindings,
              const LayerArenas& layers, std::size_t count, const UpdaterOptions& options, Stream& stream)
      : KernelDecision<T, HostLaunch>(context, bindings, layers, count, options, stream),
        optimizer_(optimizer),
        values_(bindings.values),
        layers_(layers) {
    layers_.layer_dtype = layers.dtype;
  }

  void apply(const ArenaRange& range, Stream& stream) override {
    UpdateOutcome& outcome = *this->outcome();
    if (outcome.applied == 0) return;
    const StepScalars scalars{outcome.learning_rate, outcome.gradient_factor, outcome.updates, outcome.gradient_limit,
                              this->table()->keeps_zeros};
    if (!optimizer_.step(layer_range(layers_, range, values_), scalars, stream)) outcome.spoiled = 1;
  }

 private:
  Optimizer& optimizer_;
  float* values_;
  LayerArenas layers_;
};

/// Norms are the kernels', and so is the update of a rule that needs some.
template <Number T>
std::unique_ptr<Updater> make_half_updater(DeviceContext& context, Optimizer& optimizer,
                                           const OptimizerBindings& bindings, const LayerArenas& layers,
                                           std::size_t count, const UpdaterOptions& options, Stream& stream) {
  return with_rule<std::unique_ptr<Updater>>(optimizer, [&]<class Rule>(const Rule& rule) -> std::unique_ptr<Updater> {
    if constexpr (Rule::needs_norms)
      return std::make_unique<KernelUpdater<Rule, T, HostLaunch>>(context, rule, optimizer, bindings, layers, count,
                                                                  options, stream);
    else
      return std::make_unique<HalfUpdater<T>>(context, optimizer, bindings, layers, count, options, stream);
  });
}

}  // namespace

std::unique_ptr<Updater> make_host_updater(DeviceContext& context, Optimizer& optimizer,
                                           const OptimizerBindings& bindings, const LayerArenas& layers,
                                           std::size_t count, const UpdaterOptions& options, Stream& stream) {
  if (layers.dtype == DType::float32) return std::make_unique<HostUpdater>(optimizer, bindings, layers, count, options);
  return with_number(layers.dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Updater> {
    if constexpr (std::same_as<T, float>)
      return nullptr;  // by the line above
    else
      return make_half_updater<T>(context, optimizer, bindings, layers, count, options, stream);
  });
}

}  // namespace ronda
