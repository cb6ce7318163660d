// How much is pruned when, and which: the smallest, exactly as many as asked for.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <ronda/core/random.hpp>
#include <ronda/optim/pruning.hpp>

#include "support/catch.hpp"

using namespace ronda;

namespace {

std::vector<float> pruned(std::vector<float> values, std::size_t count) {
  std::vector<std::int32_t> scratch(values.size());
  prune(values, {}, count, scratch);
  return values;
}

}  // namespace

TEST_CASE("the share of zeros grows by the cubic of Zhu and Gupta, in a hundred parts") {
  const PruningSchedule schedule(0.9, 200, 1200);
  for (const std::uint64_t step : {0, 1, 200, 209}) CHECK(schedule.share_after(step) == 0);
  std::uint64_t prunings = 0;
  for (std::uint64_t step = 1; step <= 2000; ++step) {
    const double part = std::min(1.0, std::floor((std::max<double>(static_cast<double>(step), 200) - 200) / 10) / 100);
    REQUIRE(schedule.share_after(step) == Approx(0.9 * (1 - std::pow(1 - part, 3))));
    REQUIRE(schedule.share_after(step) >= schedule.share_after(step - 1));
    REQUIRE(schedule.prunes_after(step) == (step > 200 && step <= 1200 && step % 10 == 0));
    prunings += schedule.prunes_after(step) ? 1 : 0;
  }
  CHECK(prunings == 100);
  CHECK(schedule.share_after(1200) == 0.9);
  CHECK_FALSE(schedule.prunes_after(0));
}

TEST_CASE("few steps have few parts, and one step is enough") {
  const PruningSchedule schedule(0.5, 3, 7);
  CHECK(schedule.share_after(4) == Approx(0.5 * (1 - std::pow(0.75, 3))));
  for (std::uint64_t step = 1; step < 12; ++step) CHECK(schedule.prunes_after(step) == (step > 3 && step <= 7));
  const PruningSchedule at_once(0.5, 4, 4);
  CHECK(at_once.share_after(3) == 0);
  CHECK(at_once.share_after(4) == 0.5);
  CHECK(at_once.prunes_after(4));
  CHECK(PruningSchedule(0.5, 0, 0).share_after(0) == 0.5);
  CHECK(PruningSchedule().share_after(100) == 0);
}

TEST_CASE("the smallest become zero, by magnitude; zeros count, and of equal ones the first go") {
  CHECK(pruned({3, -1, 2, -4}, 0) == std::vector<float>{3, -1, 2, -4});
  CHECK(pruned({3, -1, 2, -4}, 2) == std::vector<float>{3, 0, 0, -4});
  CHECK(pruned({3, 0, 2, -4}, 2) == std::vector<float>{3, 0, 0, -4});
  CHECK(pruned({0, 0, 2, -4}, 2) == std::vector<float>{0, 0, 2, -4});
  CHECK(pruned({1, -1, 1, -1}, 3) == std::vector<float>{0, 0, 0, -1});
  CHECK(pruned({1, 2}, 9) == std::vector<float>{0, 0});
  CHECK(pruned({}, 0).empty());
  const auto odd = pruned({std::nanf(""), 1, std::numeric_limits<float>::infinity(), -2}, 2);
  CHECK(std::isnan(odd[0]));
  CHECK(std::isinf(odd[2]));
  CHECK((odd[1] == 0 && odd[3] == 0));
}

TEST_CASE("of many values exactly as many are zero, their averages with them, and a second time changes nothing") {
  std::vector<float> values(10007), average(values.size());
  const RngKey draw(1, Purpose::test, "values");
  for (std::size_t i = 0; i < values.size(); ++i) average[i] = values[i] = draw.normal(i);
  const auto before = values;
  std::vector<std::int32_t> scratch(values.size() + 5);
  for (const std::size_t count : {1, 5000, 9000, 10006}) {
    prune(values, average, count, scratch);
    CHECK(static_cast<std::size_t>(std::ranges::count(values, 0.0F)) == count);
    CHECK(average == values);
    float largest_zero = 0, smallest = std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] == 0)
        largest_zero = std::max(largest_zero, std::abs(before[i]));
      else
        smallest = std::min(smallest, std::abs(values[i]));
    CHECK(largest_zero <= smallest);
    average[0] = 7;
    const auto once = values;
    prune(values, average, count, scratch);
    CHECK(values == once);
    CHECK(average[0] == 7);
    average = values;
  }
}
