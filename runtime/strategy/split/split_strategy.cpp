#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/split/planned_part_exchange.hpp>
#include <ronda/runtime/strategy/split/split_model.hpp>
#include <ronda/runtime/strategy/split/split_strategy.hpp>
#include <ronda/runtime/strategy/parts/whole_model.hpp>
#include <ronda/runtime/strategy/step/demands.hpp>
#include <ronda/runtime/strategy/step/step_runner.hpp>

#include <algorithm>
#include <iterator>

namespace ronda {

// ---- what it computes -----------------------------------------------------------------------------------------------

/// As a mirrored step; within it the parts exchange numbers.
void SplitStrategy::compute(const Batch& here) {
  Pass pass = runner().training_pass(here);
  pass.control = told_sums(pass.control);
  pass.parts = parts_.get();
  pass.on_ready = runner().listen();
  replica_->compute(here, pass, runner().clock());
}

/// All ranks of a group have the same loss: one adds it.
StepControl* SplitStrategy::told_sums(StepControl* sums) noexcept { return ranks_.part == 0 ? sums : &ignored_; }

void SplitStrategy::require_micro_batches(std::size_t count) const {
  if (count != options_.shape.micro_batches) refuse_other_micro_batches("all ranks that split a model");
}

void SplitStrategy::begin_evaluation(std::size_t /*batches*/) {
  if (parts_ != nullptr) parts_->count_costs(false);
}

void SplitStrategy::end_evaluation() {
  if (parts_ != nullptr) parts_->count_costs(true);
}

Outputs SplitStrategy::evaluate_batch(const Batch& given, StepControl* sums) {
  Pass pass = replica_->pass(Mode::evaluation, given, updates(), told_sums(sums));
  pass.parts = parts_.get();
  const Tensor& outputs = replica_->evaluate(given, pass);
  return {given, ranks_.part == 0 ? &outputs : nullptr};
}

std::optional<double> SplitStrategy::compute_alone(const Batch& given, const OnReady& on_ready, ControlBlock& sums) {
  sums.clear();
  Pass pass = replica_->pass(Mode::training, given, state().next_step(), sums.there());
  pass.parts = parts_.get();
  pass.on_ready = on_ready;
  StepClock unread;
  replica_->compute(given, pass, unread);
  return sums.read().loss;
}

SplitCosts SplitStrategy::split() const {
  SplitCosts costs{.parts = ranks_.parts};
  std::ranges::transform(model_->choices(), std::back_inserter(costs.layers),
                         [](const SplitChoice& choice) { return text_of(choice); });
  for (std::size_t part = 0; part < ranks_.parts; ++part) {
    std::uint64_t elements = 0;
    for (const ParameterRequest& request : model_->plan(part).requests)
      elements += static_cast<std::uint64_t>(request.desc.count());
    costs.parameters = std::max(costs.parameters, elements);
  }
  if (parts_ != nullptr) {
    costs.bytes = parts_->costs().bytes;
    costs.waiting_seconds = parts_->costs().seconds;
  }
  return costs;
}

}  // namespace ronda
