#include <ronda/core/clock.hpp>
#include <ronda/core/tensor.hpp>
#include <ronda/runtime/strategy/exchange/step_agreements.hpp>

#include <algorithm>
#include <numeric>
#include <span>

namespace ronda {

SpoiledAnywhere::SpoiledAnywhere(Communicator& ranks)
    : flag_(ranks.allocate(sizeof(float), Memory::node_shared)),
      any_(ranks.plan(AllreduceSpec{.tensors = {Tensor(std::span(&flag(), 1))},
                                    .op = ReduceOp::maximum,
                                    .label = "whether an update was finite"})) {}

Event SpoiledAnywhere::start(const UpdateOutcome& outcome, Stream& stream) {
  flag() = outcome.spoiled != 0 ? 1 : 0;
  return any_->start(stream.record());
}

void SpoiledAnywhere::set(UpdateOutcome* outcome) const noexcept { outcome->spoiled = flag() != 0 ? 1 : 0; }

SumInOrder::SumInOrder(Communicator& ranks, const std::string& label)
    : rank_(static_cast<std::size_t>(ranks.rank())),
      numbers_(static_cast<std::size_t>(ranks.size())),
      all_(ranks.plan(AllreduceSpec{.tensors = {Tensor(std::span(numbers_))}, .label = label})) {}

double SumInOrder::sum(double mine) {
  const double begin = steady_seconds();
  std::ranges::fill(numbers_, 0.0);
  numbers_[rank_] = mine;
  all_->start().wait();
  exposed_seconds_ += steady_seconds() - begin;
  return std::accumulate(numbers_.begin(), numbers_.end(), 0.0);
}

}  // namespace ronda
