#include <ronda/core/clock.hpp>
#include <ronda/runtime/strategy/pipeline/stage_exchange.hpp>

#include <span>

namespace ronda {

StageExchange::StageExchange(Communicator pipeline, std::unique_ptr<GradientExchange> stage)
    : pipeline_(std::move(pipeline)), stage_(std::move(stage)) {
  const auto plan = [&](std::span<double> numbers, ReduceOp op, const char* label) {
    return pipeline_.plan(AllreduceSpec{.tensors = {Tensor(numbers)}, .op = op, .label = label});
  };
  sums_ = plan(std::span(&stage_->sums().loss, StepControl::count), ReduceOp::sum, "the stages' sums of a step");
  sum_ = plan(std::span(&number_, 1), ReduceOp::sum, "the stages' squared norms");
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

double StageExchange::sum(double mine) {
  number_ = mine;
  wait_for(*sum_);
  return number_;
}

void StageExchange::publish(UpdateOutcome* outcome, Stream& stream) {
  stage_->publish(outcome, stream);
  spoiled_ = outcome->spoiled != 0 ? 1 : 0;
  wait_for(*any_spoiled_);
  outcome->spoiled = spoiled_ != 0 ? 1 : 0;
}

}  // namespace ronda
