#include <ronda/core/clock.hpp>
#include <ronda/runtime/strategy/pipeline/stage_exchange.hpp>

#include <algorithm>
#include <numeric>
#include <span>

namespace ronda {

StageExchange::StageExchange(Communicator pipeline, std::unique_ptr<GradientExchange> stage)
    : pipeline_(std::move(pipeline)),
      stage_(std::move(stage)),
      numbers_(static_cast<std::size_t>(pipeline_.size())),
      spoiled_(pipeline_) {
  const auto plan = [&](std::span<double> numbers, const char* label) {
    return pipeline_.plan(AllreduceSpec{.tensors = {Tensor(numbers)}, .label = label});
  };
  sums_ = plan(std::span(&stage_->sums().loss, StepControl::count), "the stages' sums of a step");
  sum_ = plan(std::span(numbers_), "the stages' squared norms");
}

void StageExchange::wait_for(Event event) {
  const double begin = steady_seconds();
  event.wait();
  exposed_seconds_ += steady_seconds() - begin;
}

void StageExchange::reduce(Sums wanted, Stream& stream) {
  stage_->reduce(wanted, stream);
  wait_for(sums_->start());
}

/// In the order of the stages, by whatever algorithm: each sum of the allreduce has one number that is not zero.
double StageExchange::sum(double mine) {
  std::ranges::fill(numbers_, 0.0);
  numbers_[static_cast<std::size_t>(pipeline_.rank())] = mine;
  wait_for(sum_->start());
  return std::accumulate(numbers_.begin(), numbers_.end(), 0.0);
}

void StageExchange::publish(UpdateOutcome* outcome, Stream& stream) {
  stage_->publish(outcome, stream);
  wait_for(spoiled_.start(*outcome, stream));
  spoiled_.set(outcome);
}

}  // namespace ronda
