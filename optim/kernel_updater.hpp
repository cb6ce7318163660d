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

/// The parameter of each line of 16 elements of an arena of `count` elements. Throws LogicError for segments that are
/// not aligned, overlap, or exceed the arena.
[[nodiscard]] std::vector<std::uint16_t> parameters_of_lines(const OptimizerBindings& bindings, std::size_t count);

/// The part of a kernel-based updater that is independent of the rule: the decision about a step, the averages, the
/// layers' copy. All numbers that it needs are on the device of the values.
/// @tparam T       element type of the gradients
/// @tparam Launch  runs a kernel: for_each(Stream&, std::int64_t count, body) calls body(i) for each i < count, in any
///                 order
template <Number T, class Launch>
class KernelDecision : public Updater {
 public:
  /// See MakeUpdater.
  KernelDecision(DeviceContext& context, const OptimizerBindings& bindings, const LayerArenas& layers,
                 std::size_t count, const UpdaterOptions& options, Stream& stream)
      : context_(context), count_(static_cast<std::int64_t>(count)), needs_norm_(options.needs_norm()) {
    using namespace update_kernels;
    lines_ = upload(parameters_of_lines(bindings, count), stream);
    table_ = context.allocate(sizeof(RateTable));
    upload_rates(options.schedule, 0, stream);
    outcome_ = context.allocate(sizeof(UpdateOutcome));
    if (needs_norm_) sums_ = context.allocate((partial_sums + sums_of_partials + 1) * sizeof(double));
    squares_ = {reinterpret_cast<const T*>(layers.gradients), parameter_of_line(), count_, at<double>(sums_)};
    decide_ = {.table = at<RateTable>(table_),
               .loss_scale = options.loss_scale,
               .clip_norm = options.clip_norm,
               .clip_value = options.clip_value,
               .squared_norm = needs_norm_ ? norm() : nullptr,
               .check_gradients = options.checks_gradients(),
               .more_scale = options.more_scale,
               .total = nullptr,
               .outcome = at<UpdateOutcome>(outcome_)};
    average_ = {decide_.outcome, bindings.values, options.average, options.average_decay};
    round_ = {bindings.values, reinterpret_cast<T*>(layers.values)};
    values_ = bindings.values;
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
  }

  [[nodiscard]] bool reads_all_gradients() const noexcept override { return needs_norm_; }

  void average(Stream& stream) final {
    if (average_.average != nullptr) Launch::for_each(stream, count_, average_);
  }
  void swap_average(Stream& stream) final {
    if (average_.average != nullptr) Launch::for_each(stream, count_, update_kernels::Swap{values_, average_.average});
  }

  void round_values(Stream& stream) final {
    if (round_.rounded != nullptr) Launch::for_each(stream, count_, round_);
  }

  [[nodiscard]] UpdateOutcome* outcome() noexcept final { return decide_.outcome; }

  void set_updates(std::uint64_t updates, Stream& stream) final {
    context_.copy(&updates, &decide_.outcome->updates, sizeof updates, stream);
    stream.synchronize();
  }

  void set_schedule(const Schedule& schedule, Stream& stream) final {
    std::uint64_t updates = 0;
    context_.copy(&decide_.outcome->updates, &updates, sizeof updates, stream);
    stream.synchronize();  // the old rates are not read after this
    upload_rates(schedule, updates, stream);
    stream.synchronize();
  }

  void set_rate_factor(double factor, Stream& stream) final {
    rate_table_.factor = factor;
    upload_table(stream);
    stream.synchronize();
  }

  void set_keeps_zeros(bool keeps, Stream& stream) final {
    rate_table_.keeps_zeros = keeps;
    upload_table(stream);
    stream.synchronize();
  }

 protected:
  template <class Element>
  [[nodiscard]] static Element* at(const Buffer& buffer) {
    return reinterpret_cast<Element*>(buffer.data());
  }
  [[nodiscard]] const std::uint16_t* parameter_of_line() const { return at<std::uint16_t>(lines_); }
  [[nodiscard]] const update_kernels::RateTable* table() const noexcept { return decide_.table; }
  /// Waits for the stream, so that `elements` may be destroyed.
  template <class Element>
  [[nodiscard]] Buffer upload(const std::vector<Element>& elements, Stream& stream) const {
    Buffer buffer = context_.allocate(elements.size() * sizeof(Element));
    context_.copy(elements.data(), buffer.data(), buffer.bytes(), stream);
    stream.synchronize();
    return buffer;
  }

 private:
  /// The caller waits for the stream.
  void upload_rates(const Schedule& schedule, std::uint64_t first_update, Stream& stream) {
    const std::vector<double> rates = schedule.rates();
    rates_ = upload(rates, stream);
    rate_table_.rates = at<double>(rates_);
    rate_table_.count = static_cast<std::int64_t>(rates.size());
    rate_table_.first = first_update;
    upload_table(stream);
  }
  void upload_table(Stream& stream) const { context_.copy(&rate_table_, table_.data(), sizeof rate_table_, stream); }
  [[nodiscard]] double* norm() const {
    return at<double>(sums_) + update_kernels::partial_sums + update_kernels::sums_of_partials;
  }

  DeviceContext& context_;
  std::int64_t count_;
  bool needs_norm_;
  float* values_ = nullptr;
  update_kernels::RateTable rate_table_;  ///< host copy of `table_`
  Buffer lines_, rates_, table_, outcome_, sums_;
  update_kernels::SumSquares<T> squares_{};
  update_kernels::Decide decide_{};
  update_kernels::Average average_{};
  update_kernels::Round<T> round_{};
};

/// The segment of each parameter, with the factors of its group. Throws InputError for an invalid group.
[[nodiscard]] std::vector<update_kernels::Segment> segments_of(const Optimizer& optimizer,
                                                               const OptimizerBindings& bindings);

/// An updater that consists only of kernels; see KernelDecision.
template <UpdateRule Rule, Number T, class Launch>
class KernelUpdater final : public KernelDecision<T, Launch> {
  using Decision = KernelDecision<T, Launch>;

 public:
  /// See MakeUpdater.
  KernelUpdater(DeviceContext& context, const Rule& rule, const Optimizer& optimizer, const OptimizerBindings& bindings,
                const LayerArenas& layers, std::size_t count, const UpdaterOptions& options, Stream& stream)
      : Decision(context, bindings, layers, count, options, stream),
        parameters_(static_cast<std::int64_t>(bindings.segments.size())) {
    using namespace update_kernels;
    if (bindings.states.size() != Rule::states.size())
      throw LogicError("optimizer " + std::string(optimizer.name()) + " needs " + std::to_string(Rule::states.size()) +
                       " state arenas, " + std::to_string(bindings.states.size()) + " were given");
    if (bindings.kept) throw LogicError("kernels need the states of all elements, and a part of them is kept");
    segments_ = this->upload(segments_of(optimizer, bindings), stream);
    scalars_ = context.allocate(bindings.segments.size() * sizeof(typename Rule::Scalars));
    if (Rule::needs_norms) parameter_sums_ = context.allocate(bindings.segments.size() * 3 * lanes * sizeof(double));
    square_parameters_ = {segments(),      bindings.values, reinterpret_cast<const T*>(layers.gradients),
                          this->outcome(), value_sums(),    gradient_sums()};
    prepare_ = {rule,
                segments(),
                value_sums(),
                gradient_sums(),
                update_sums(),
                this->outcome(),
                this->template at<typename Rule::Scalars>(scalars_)};
    const auto state = [&](std::size_t i) { return i < bindings.states.size() ? bindings.states[i] : nullptr; };
    update_ = {this->outcome(),
               prepare_.scalars,
               this->parameter_of_line(),
               bindings.values,
               reinterpret_cast<const T*>(layers.gradients),
               state(0),
               state(1),
               state(2),
               reinterpret_cast<T*>(layers.values),
               segments(),
               this->table()};
  }

  void decide(const StepControl* total, Stream& stream) override {
    using namespace update_kernels;
    Decision::decide(total, stream);
    if (Rule::needs_norms) Launch::for_each(stream, parameters_ * lanes, square_parameters_);
    if constexpr (TwoPassRule<Rule>) {
      Prepare<Rule> first_pass = prepare_;
      first_pass.value_sums = nullptr;
      Launch::for_each(stream, parameters_, first_pass);
      Launch::for_each(stream, parameters_ * lanes, Propose<Rule, T>{update_, segments(), update_sums()});
    }
    Launch::for_each(stream, parameters_, prepare_);
  }

  void apply(const ArenaRange& range, Stream& stream) override {
    if (!range.more_gradients.empty() || !range.copies.empty())
      throw LogicError("kernels update one replica, from gradients that are summed before");
    Launch::for_each(stream, static_cast<std::int64_t>(range.count), update_.from(range.values - update_.values));
  }

  [[nodiscard]] bool reads_all_gradients() const noexcept override {
    return Rule::needs_norms || Decision::reads_all_gradients();
  }

 private:
  [[nodiscard]] const update_kernels::Segment* segments() const {
    return this->template at<update_kernels::Segment>(segments_);
  }
  // Sums of squares of whole parameters; null if the rule needs no norms.
  [[nodiscard]] double* value_sums() const { return this->template at<double>(parameter_sums_); }
  [[nodiscard]] double* gradient_sums() const {
    return Rule::needs_norms ? value_sums() + parameters_ * update_kernels::lanes : nullptr;
  }
  [[nodiscard]] double* update_sums() const {
    return TwoPassRule<Rule> ? gradient_sums() + parameters_ * update_kernels::lanes : nullptr;
  }

  std::int64_t parameters_;
  Buffer segments_, scalars_, parameter_sums_;
  update_kernels::SquareParameters<T> square_parameters_{};
  update_kernels::Prepare<Rule> prepare_{};
  update_kernels::Update<Rule, T> update_{};
};

}  // namespace ronda
