#include <ronda/core/clock.hpp>
#include <ronda/runtime/strategy/exchange/parts_exchange.hpp>

#include <algorithm>
#include <numeric>
#include <span>

namespace ronda {

PartsExchange::PartsExchange(Communicator group, std::unique_ptr<GradientExchange> part)
    : group_(std::move(group)),
      part_(std::move(part)),
      numbers_(static_cast<std::size_t>(group_.size())),
      spoiled_(group_) {
  const auto plan = [&](std::span<double> numbers, const char* label) {
    return group_.plan(AllreduceSpec{.tensors = {Tensor(numbers)}, .label = label});
  };
  sums_ = plan(std::span(&part_->sums().loss, StepControl::count), "the parts' sums of a step");
  sum_ = plan(std::span(numbers_), "the parts' squared norms");
}

void PartsExchange::wait_for(Event event) {
  const double begin = steady_seconds();
  event.wait();
  exposed_seconds_ += steady_seconds() - begin;
}

void PartsExchange::reduce(Sums wanted, Stream& stream) {
  part_->reduce(wanted, stream);
  wait_for(sums_->start());
}

/// In the order of the parts, by whatever algorithm: each sum of the allreduce has one number that is not zero.
double PartsExchange::sum(double mine) {
  std::ranges::fill(numbers_, 0.0);
  numbers_[static_cast<std::size_t>(group_.rank())] = mine;
  wait_for(sum_->start());
  return std::accumulate(numbers_.begin(), numbers_.end(), 0.0);
}

void PartsExchange::publish(UpdateOutcome* outcome, Stream& stream) {
  part_->publish(outcome, stream);
  wait_for(spoiled_.start(*outcome, stream));
  spoiled_.set(outcome);
}

}  // namespace ronda
