#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/step/planned_rank_sums.hpp>

#include <algorithm>
#include <string>

namespace ronda {

PlannedRankSums::PlannedRankSums(Communicator& communicator, std::span<const std::size_t> counts) {
  for (const std::size_t count : counts) {
    Planned& planned = planned_.emplace_back(Planned{std::vector<double>(count), nullptr});
    planned.sum = communicator.plan(AllreduceSpec{.tensors = {Tensor(std::span(planned.numbers))},
                                                  .label = "statistics of " + std::to_string(count) + " numbers"});
  }
}

void PlannedRankSums::add_up(std::span<double> numbers) {
  const auto planned =
      std::ranges::find(planned_, numbers.size(), [](const Planned& each) { return each.numbers.size(); });
  if (planned == planned_.end())
    throw LogicError("an operation adds up " + std::to_string(numbers.size()) +
                     " numbers over the ranks, and its plan does not say so");
  std::ranges::copy(numbers, planned->numbers.begin());
  planned->sum->start().wait();
  std::ranges::copy(planned->numbers, numbers.begin());
}

}  // namespace ronda
