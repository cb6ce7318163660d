#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/number.hpp>
#include <ronda/optim/kernel_decision.hpp>
#include <ronda/optim/rule.hpp>
#include <ronda/optim/update_kernels.hpp>
#include <ronda/optim/updater.hpp>

namespace ronda {

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
