#include <algorithm>
#include <numeric>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/random.hpp>
#include <ronda/data/batch_plan.hpp>
#include <ronda/data/detail/epoch_samples.hpp>

#include "support/catch.hpp"

using namespace ronda;

namespace {

std::vector<std::uint64_t> order_of(const SampleOrder& order, std::uint64_t epoch) {
  std::vector<std::uint64_t> samples(order.size());
  order.write(epoch, samples);
  return samples;
}

}  // namespace

TEST_CASE("a plan knows the smallest micro-batch of a full step, and which shards have samples there") {
  for (const std::size_t batch : {1, 3, 7, 20})
    for (const std::size_t shards : {1, 2, 3, 6})
      for (const std::size_t accumulate : {1, 2, 5}) {
        std::size_t smallest = batch;
        for (std::size_t shard = 0; shard < shards; ++shard) {
          const BatchPlan plan(100, batch, {shard, shards}, accumulate);
          std::size_t all = 0;
          for (std::size_t micro = 0; micro < accumulate; ++micro)
            if (const std::size_t rows = plan.part(0, micro).size(); rows > 0) {
              smallest = std::min(smallest, rows);
              all += rows;
            }
          CHECK(plan.has_samples() == (all > 0));
        }
        CHECK(BatchPlan(100, batch, {0, shards}, accumulate).smallest() == smallest);
      }
}

TEST_CASE("an epoch is every sample once, each step the same samples on any number of shards") {
  for (const std::size_t size : {1, 7, 28, 100})
    for (const std::size_t batch : {1, 3, 20, 100, 1000})
      for (const std::size_t shards : {1, 2, 3, 6})
        for (const std::size_t accumulate : {1, 2, 5}) {
          const BatchPlan whole(size, batch);
          std::size_t at = 0;
          for (std::size_t step = 0; step < whole.steps_per_epoch(); ++step) {
            REQUIRE(whole.part(step).begin == at);
            for (std::size_t shard = 0; shard < shards; ++shard) {
              const BatchPlan plan(size, batch, {shard, shards}, accumulate);
              REQUIRE(plan.samples(step) == whole.part(step).size());
              for (std::size_t micro = 0; micro < accumulate; ++micro) {
                const Range part = plan.part(step, micro);
                REQUIRE(plan.first_row(step, micro) == at - whole.part(step).begin);
                REQUIRE(part.begin == at);  // contiguous: rank after rank, micro-batch after micro-batch
                REQUIRE(part.size() <= plan.capacity());
                REQUIRE(part.begin < whole.part(step).end);  // a sample of the step, whether it is ours or not
                at = part.end;
              }
            }
            REQUIRE(whole.part(step).end == at);
          }
          REQUIRE(at == size);
        }
}

TEST_CASE("micro-batches that are dealt unevenly are every sample of the step once, in the ranks' order") {
  for (const std::size_t size : {1, 28, 100})
    for (const std::size_t batch : {3, 20, 100}) {
      const BatchPlan whole(size, batch);
      for (const std::vector<std::size_t>& counts : {std::vector<std::size_t>{1, 5, 2, 4}, {3, 3, 3, 3}, {9, 1, 1, 1}})
        for (std::size_t step = 0; step < whole.steps_per_epoch(); ++step) {
          std::size_t at = whole.part(step).begin, first = 0;
          for (std::size_t shard = 0; shard < counts.size(); first += counts[shard++]) {
            const BatchPlan plan = BatchPlan(size, batch, {shard, 4}, 3).dealt({first, counts[shard], 12});
            REQUIRE(plan.micro_batches() == counts[shard]);
            for (std::size_t micro = 0; micro < counts[shard]; ++micro) {
              const Range part = plan.part(step, micro);
              REQUIRE(part.begin == at);
              REQUIRE(plan.first_row(step, micro) == at - whole.part(step).begin);
              REQUIRE(part.size() <= plan.capacity());
              at = part.end;
            }
          }
          REQUIRE(at == whole.part(step).end);
        }
    }
  const BatchPlan plan(28, 20, {1, 4}, 3);
  for (const Deal& deal : {Deal{0, 0, 12}, Deal{11, 2, 12}, Deal{0, 1, 4}})
    REQUIRE_THROWS_AS(plan.dealt(deal), LogicError);
}

TEST_CASE("capacities and steps are what the arithmetic says") {
  REQUIRE(BatchPlan(60000, 64).steps_per_epoch() == 938);
  REQUIRE(BatchPlan(60000, 64, {0, 3}).capacity() == 22);
  REQUIRE(BatchPlan(60000, 64, {0, 3}, 4).capacity() == 6);
  REQUIRE(BatchPlan(10, 1000, {0, 3}).capacity() == 4);  // no rows for samples that there are not
  REQUIRE(BatchPlan(10, 4).with_capacity(9).capacity() == 9);
  REQUIRE(BatchPlan(10, 4).with_capacity(2).capacity() == 4);
  REQUIRE_THROWS_AS(BatchPlan(0, 4), InputError);
  REQUIRE_THROWS_AS(BatchPlan(4, 0), InputError);
  REQUIRE_THROWS_AS(BatchPlan(4, 4, {}, 0), InputError);
  REQUIRE_THROWS_AS(BatchPlan(4, 4, {3, 2}), LogicError);
  REQUIRE_THROWS_AS(BatchPlan(4, 4, {0, 0}), LogicError);
}

TEST_CASE("an empty shard has no samples, and plans as the others do") {
  const BatchPlan plan(28, 20, {3, 3}, 2), other(28, 20, {0, 3}, 2);
  REQUIRE(plan.is_empty());
  REQUIRE_FALSE(other.is_empty());
  REQUIRE(plan.capacity() == other.capacity());
  REQUIRE(plan.steps_per_epoch() == 2);
  for (const std::size_t step : {0, 1})
    for (const std::size_t micro : {0, 1}) REQUIRE(plan.part(step, micro).size() == 0);
}

TEST_CASE("the example in the header is true") {
  const std::vector<std::size_t> cuts{0, 3, 6, 10, 13, 16, 20}, last{20, 21, 22, 24, 25, 26, 28};
  for (std::size_t shard = 0; shard < 6; ++shard) {
    REQUIRE(BatchPlan(28, 20, {shard, 6}).part(0) == Range{cuts[shard], cuts[shard + 1]});
    REQUIRE(BatchPlan(28, 20, {shard, 6}).part(1) == Range{last[shard], last[shard + 1]});
  }
}

TEST_CASE("a shuffled order is a permutation that seed and epoch decide") {
  const SampleOrder order(1000, 7, true);
  auto first = order_of(order, 1);
  REQUIRE(first == order_of(SampleOrder(1000, 7, true), 1));
  REQUIRE(first != order_of(order, 2));
  REQUIRE(first != order_of(SampleOrder(1000, 8, true), 1));
  std::sort(first.begin(), first.end());
  REQUIRE(first == order_of(SampleOrder(1000, 7, false), 1));
}

TEST_CASE("a shuffled order is that of Fisher and Yates, number by number") {
  for (const std::size_t size : {1U, 2U, 16U, 17U, 33U, 1001U}) {
    const RngKey key(7, Purpose::sample_order, 3);
    std::vector<std::uint64_t> expected(size);
    std::iota(expected.begin(), expected.end(), std::uint64_t{0});
    for (std::size_t last = size; last-- > 1;) std::swap(expected[last], expected[key.below(last + 1, last)]);
    CHECK(order_of(SampleOrder(size, 7, true), 3) == expected);
  }
}

TEST_CASE("without shuffling the order is that of the data") {
  REQUIRE(order_of(SampleOrder(4, 7, false), 3) == std::vector<std::uint64_t>{0, 1, 2, 3});
}

TEST_CASE("an order in 32 bits is that in 64, and what an epoch reads") {
  for (const bool shuffle : {true, false})
    for (const std::size_t size : {1U, 2U, 1001U}) {
      const SampleOrder order(size, 7, shuffle);
      EpochSamples samples(order);
      std::vector<std::uint32_t> short_numbers(size);
      for (const std::uint64_t epoch : {1U, 2U, 1U}) {
        const auto expected = order_of(order, epoch);
        order.write(epoch, short_numbers);
        samples.set_epoch(epoch);
        REQUIRE(std::ranges::equal(short_numbers, expected));
        for (std::size_t place = 0; place < size; ++place) REQUIRE(samples[place] == expected[place]);
      }
    }
}

TEST_CASE("every sample comes first about equally often") {
  std::vector<int> first(5);
  for (std::uint64_t epoch = 1; epoch <= 5000; ++epoch) ++first[order_of(SampleOrder(5, 1, true), epoch)[0]];
  for (const int times : first) REQUIRE(std::abs(times - 1000) < 150);  // five standard deviations
}
