// What the stages of a pipeline sum, they sum in their own order, so that all pipelines decide alike to the bit.
#include "support/catch.hpp"
#include "support/ranks.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/runtime/strategy/exchange/bucketed_allreduce.hpp>
#include <ronda/runtime/strategy/parts/parts_exchange.hpp>

using namespace ronda;
using namespace ronda::test;

namespace parts_exchange_test {
namespace {

/// A pipeline of all ranks: the exchange of a stage is one rank's, of one gradient.
struct OneRankStages {
  OneRankStages()
      : alone(world().communicator().split(world().rank(), 0)),
        gradients(alone.allocate(sizeof(float), Memory::node_shared)),
        exchange(world().communicator(), std::make_unique<BucketedAllreduce>(
                                             alone, std::vector<GradientSlot>{{ParameterId{0}, "w", 0, sizeof(float)}},
                                             gradients, ArenaRange{}, FusionOptions())) {}

  Communicator alone;
  Buffer gradients;
  PartsExchange exchange;
};

/// Each number is of one stage. 1e16 ± 1 rounds to 1e16, so that the sum depends on the order.
std::vector<double> numbers_of_stages() {
  std::vector<double> numbers{1, 1e16, -1e16, 1};
  numbers.resize(static_cast<std::size_t>(world().size()));
  return numbers;
}

}  // namespace

TEST_CASE("stages sum their numbers in the order of the stages, whichever they are") {
  OneRankStages stages;
  std::vector<double> numbers = numbers_of_stages();
  std::ranges::sort(numbers);
  do {
    const double expected = std::accumulate(numbers.begin(), numbers.end(), 0.0);
    const double found = stages.exchange.sum(numbers[static_cast<std::size_t>(world().rank())]);
    INFO("stage " << world().rank() << " has " << numbers[static_cast<std::size_t>(world().rank())]);
    CHECK(found == expected);
  } while (std::ranges::next_permutation(numbers).found);
}

TEST_CASE("these numbers have several sums") {
  if (world().size() < 3) return;
  std::vector<double> numbers = numbers_of_stages(), sums;
  std::ranges::sort(numbers);
  do sums.push_back(std::accumulate(numbers.begin(), numbers.end(), 0.0));
  while (std::ranges::next_permutation(numbers).found);
  CHECK(std::ranges::count(sums, sums.front()) < std::ssize(sums));
}

}  // namespace parts_exchange_test
