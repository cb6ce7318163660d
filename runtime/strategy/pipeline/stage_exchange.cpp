#include <ronda/core/clock.hpp>
#include <ronda/runtime/strategy/pipeline/stage_exchange.hpp>

#include <algorithm>
#include <numeric>
#include <span>

namespace ronda {

StageExchange::StageExchange(Communicator pipeline, std::unique_ptr<GradientExchange> stage)
    : pipeline_(std::move(pipeline)), stage_(std::move(stage)), numbers_(static_cast<std::size_t>(pipeline_.size())) {
  const auto plan = [&](std::span<double> numbers, ReduceOp op, const char* label) {
    return pipeline_.plan(AllreduceSpec{.tensors = {Tensor(numbers)}, .op = op, .label = label});
  };
  sums_ = plan(std::span(&stage_->sums().loss, StepControl::count), ReduceOp::sum, "the stages' sums of a step");
  sum_ = plan(std::span(numbers_), ReduceOp::sum, "the stages' squared norms");
  any_spoiled_ = plan(std::span(&spoiled_, 1), ReduceOp::maximum, "whether a stage's update was finite");
}

void StageExchange::wait_for(Collective& collective) {
  const double begin = steady_seconds();
  collective.start().wait();
  exposed_seconds_ += steady_seconds() - begin;
}

void StageExchange::reduce(Sums wanted, Stream& stream) {
  stage_->reduce(wanted, stream);
  wait_for(*sums_);
}

/// In the order of the stages, by whatever algorithm: each sum of the allreduce has one number that is not zero.
double StageExchange::sum(double mine) {
  std::ranges::fill(numbers_, 0.0);
  numbers_[static_cast<std::size_t>(pipeline_.rank())] = mine;
  wait_for(*sum_);
  return std::accumulate(numbers_.begin(), numbers_.end(), 0.0);
}

void StageExchange::publish(UpdateOutcome* outcome, Stream& stream) {
  stage_->publish(outcome, stream);
  spoiled_ = outcome->spoiled != 0 ? 1 : 0;
  wait_for(*any_spoiled_);
  outcome->spoiled = spoiled_ != 0 ? 1 : 0;
}

}  // namespace ronda
