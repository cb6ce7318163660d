#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/number.hpp>
#include <ronda/optim/rule.hpp>
#include <ronda/optim/update_kernels.hpp>
#include <ronda/optim/updater.hpp>

namespace ronda {

/// The factors of each parameter's group. Throws InputError for a bad group.
[[nodiscard]] std::vector<update_kernels::Segment> segments_of(const Optimizer& optimizer,
                                                               const OptimizerBindings& bindings);

/// The parameter of each line of 16 elements of an arena of `count` elements. Throws LogicError for segments that are
/// not aligned, overlap or do not fit.
[[nodiscard]] std::vector<std::uint16_t> parameters_of_lines(const OptimizerBindings& bindings, std::size_t count);

/// An updater made of kernels alone: every number that it needs lies in the memory of the values.
/// @tparam T       type of the gradients
/// @tparam Launch  runs a kernel: for_each(Stream&, std::int64_t count, body) calls body(i) for each i < count, in any
///                 order
template <UpdateRule Rule, Number T, class Launch>
class KernelUpdater final : public Updater {
 public:
  /// See MakeUpdater.
  KernelUpdater(DeviceContext& context, const Rule& rule, const Optimizer& optimizer, const OptimizerBindings& bindings,
                const LayerArenas& layers, std::size_t count, const UpdaterOptions& options, Stream& stream)
      : context_(context),
        count_(static_cast<std::int64_t>(count)),
        parameters_(static_cast<std::int64_t>(bindings.segments.size())),
        needs_norm_(options.needs_norm()) {
    using namespace update_kernels;
    if (bindings.states.size() != Rule::states.size())
      throw LogicError("optimizer " + std::string(optimizer.name()) + " needs " + std::to_string(Rule::states.size()) +
                       " state arenas, " + std::to_string(bindings.states.size()) + " were given");
    const auto lines = parameters_of_lines(bindings, count);
    const auto segments = segments_of(optimizer, bindings);
    lines_ = upload(lines, stream);
    segments_ = upload(segments, stream);
    table_ = context.allocate(sizeof(RateTable));
    upload_rates(options.schedule, 0, stream);
    scalars_ = context.allocate(segments.size() * sizeof(typename Rule::Scalars));
    outcome_ = context.allocate(sizeof(UpdateOutcome));
    if (needs_norm_) sums_ = context.allocate((partial_sums + sums_of_partials + 1) * sizeof(double));
    if (Rule::needs_norms) parameter_sums_ = context.allocate(segments.size() * 3 * lanes * sizeof(double));
    squares_ = {reinterpret_cast<const T*>(layers.gradients), at<std::uint16_t>(lines_), count_, at<double>(sums_)};
    decide_ = {.table = at<RateTable>(table_),
               .loss_scale = options.loss_scale,
               .clip_norm = options.clip_norm,
               .clip_value = options.clip_value,
               .squared_norm = needs_norm_ ? norm() : nullptr,
               .check_gradients = options.checks_gradients(),
               .more_scale = options.more_scale,
               .total = nullptr,
               .outcome = at<UpdateOutcome>(outcome_)};
    square_parameters_ = {at<Segment>(segments_), bindings.values, reinterpret_cast<const T*>(layers.gradients),
                          decide_.outcome,        value_sums(),    gradient_sums()};
    prepare_ = {rule,
                at<Segment>(segments_),
                value_sums(),
                gradient_sums(),
                update_sums(),
                decide_.outcome,
                at<typename Rule::Scalars>(scalars_)};
    const auto state = [&](std::size_t i) { return i < bindings.states.size() ? bindings.states[i] : nullptr; };
    update_ = {decide_.outcome,
               prepare_.scalars,
               at<std::uint16_t>(lines_),
               bindings.values,
               reinterpret_cast<const T*>(layers.gradients),
               state(0),
               state(1),
               state(2),
               reinterpret_cast<T*>(layers.values)};
    average_ = {decide_.outcome, bindings.values, options.average, options.average_decay};
    stream.synchronize();  // the host's memory that was uploaded may go
  }

  void decide(const StepControl* total, Stream& stream) override {
    using namespace update_kernels;
    if (needs_norm_) {
      double* const sums = at<double>(sums_);
      Launch::for_each(stream, partial_sums, squares_);
      Launch::for_each(stream, sums_of_partials,
                       SumPartials{sums, partial_sums, sums_of_partials, sums + partial_sums});
      Launch::for_each(stream, 1, SumPartials{sums + partial_sums, sums_of_partials, 1, norm()});
    }
    Decide decide = decide_;
    decide.total = total;
    Launch::for_each(stream, 1, decide);
    if (Rule::needs_norms) Launch::for_each(stream, parameters_ * lanes, square_parameters_);
    if constexpr (TwoPassRule<Rule>) {
      Prepare<Rule> first_pass = prepare_;
      first_pass.value_sums = nullptr;
      Launch::for_each(stream, parameters_, first_pass);
      Launch::for_each(stream, parameters_ * lanes, Propose<Rule, T>{update_, at<Segment>(segments_), update_sums()});
    }
    Launch::for_each(stream, parameters_, prepare_);
  }

  void apply(const ArenaRange& range, Stream& stream) override {
    if (!range.more_gradients.empty() || !range.copies.empty())
      throw LogicError("kernels update one replica, from gradients that are summed before");
    Launch::for_each(stream, static_cast<std::int64_t>(range.count), update_.from(range.values - update_.values));
  }

  [[nodiscard]] bool reads_all_gradients() const noexcept override { return needs_norm_ || Rule::needs_norms; }

  void average(Stream& stream) override {
    if (average_.average != nullptr) Launch::for_each(stream, count_, average_);
  }
  void swap_average(Stream& stream) override {
    if (average_.average != nullptr)
      Launch::for_each(stream, count_, update_kernels::Swap{update_.values, average_.average});
  }

  void round_values(Stream& stream) override {
    if (update_.rounded != nullptr)
      Launch::for_each(stream, count_, update_kernels::Round<T>{update_.values, update_.rounded});
  }

  [[nodiscard]] UpdateOutcome* outcome() noexcept override { return decide_.outcome; }

  void set_updates(std::uint64_t updates, Stream& stream) override {
    context_.copy(&updates, &decide_.outcome->updates, sizeof updates, stream);
    stream.synchronize();
  }

  void set_schedule(const Schedule& schedule, Stream& stream) override {
    std::uint64_t updates = 0;
    context_.copy(&decide_.outcome->updates, &updates, sizeof updates, stream);
    stream.synchronize();  // nothing reads the old rates any more
    upload_rates(schedule, updates, stream);
    stream.synchronize();
  }

  void set_rate_factor(double factor, Stream& stream) override {
    rate_table_.factor = factor;
    upload_table(stream);
    stream.synchronize();
  }

 private:
  /// The caller waits for the stream.
  void upload_rates(const Schedule& schedule, std::uint64_t first_update, Stream& stream) {
    host_rates_ = schedule.rates();
    rates_ = upload(host_rates_, stream);
    rate_table_.rates = at<double>(rates_);
    rate_table_.count = static_cast<std::int64_t>(host_rates_.size());
    rate_table_.first = first_update;
    upload_table(stream);
  }
  void upload_table(Stream& stream) const { context_.copy(&rate_table_, table_.data(), sizeof rate_table_, stream); }
  template <class Element>
  [[nodiscard]] static Element* at(const Buffer& buffer) {
    return reinterpret_cast<Element*>(buffer.data());
  }
  // Of whole parameters; null where the rule needs no norms.
  [[nodiscard]] double* value_sums() const { return at<double>(parameter_sums_); }
  [[nodiscard]] double* gradient_sums() const {
    return Rule::needs_norms ? value_sums() + parameters_ * update_kernels::lanes : nullptr;
  }
  [[nodiscard]] double* update_sums() const {
    return TwoPassRule<Rule> ? gradient_sums() + parameters_ * update_kernels::lanes : nullptr;
  }
  [[nodiscard]] double* norm() const {
    return at<double>(sums_) + update_kernels::partial_sums + update_kernels::sums_of_partials;
  }
  template <class Element>
  [[nodiscard]] Buffer upload(const std::vector<Element>& elements, Stream& stream) const {
    Buffer buffer = context_.allocate(elements.size() * sizeof(Element));
    context_.copy(elements.data(), buffer.data(), buffer.bytes(), stream);
    return buffer;
  }

  DeviceContext& context_;
  std::int64_t count_, parameters_;
  bool needs_norm_;
  std::vector<double> host_rates_;
  update_kernels::RateTable rate_table_;  ///< as it lies in `table_`
  Buffer lines_, segments_, rates_, table_, scalars_, outcome_, sums_, parameter_sums_;
  update_kernels::SumSquares<T> squares_{};
  update_kernels::SquareParameters<T> square_parameters_{};
  update_kernels::Decide decide_{};
  update_kernels::Prepare<Rule> prepare_{};
  update_kernels::Update<Rule, T> update_{};
  update_kernels::Average average_{};
};

}  // namespace ronda
