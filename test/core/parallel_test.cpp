#include <sched.h>

#include <atomic>
#include <string>
#include <vector>

#include <ronda/core/core_mask.hpp>
#include <ronda/core/parallel.hpp>

#include "support/catch.hpp"

using namespace ronda;

TEST_CASE("parts are contiguous, complete and even") {
  for (const std::size_t count : {0, 1, 2, 7, 64, 1000, 60000})
    for (const std::size_t workers : {1, 2, 3, 7, 16, 100}) {
      std::size_t at = 0, least = count, most = 0;
      for (std::size_t i = 0; i < workers; ++i) {
        const Range part = part_of(count, i, workers);
        REQUIRE(part.begin == at);
        at = part.end;
        least = std::min(least, part.size());
        most = std::max(most, part.size());
      }
      REQUIRE(at == count);
      REQUIRE(most - least <= 1);
    }
  constexpr std::size_t huge = std::size_t{1} << 63;
  REQUIRE(part_of(huge, 2, 3).end == huge);
}

TEST_CASE("ranges overlap in what both have") {
  const auto both = overlap_of({2, 7}, {5, 9});
  CHECK(both.begin == 5);
  CHECK(both.end == 7);
  CHECK(overlap_of({5, 9}, {2, 3}).size() == 0);
  CHECK(overlap_of({2, 3}, {5, 9}).size() == 0);
}

TEST_CASE("parallel_for does everything once, cut at multiples of its alignment") {
  for (const int threads : {1, 2, 3, 5})
    for (const std::size_t count : {0, 1, 15, 16, 17, 1000}) {
      std::vector<int> done(count);
      std::atomic<bool> aligned{true};
      parallel_for(
          threads, count,
          [&](Range part) {
            if (part.begin % 16 != 0 || (part.end % 16 != 0 && part.end != count)) aligned = false;
            for (std::size_t i = part.begin; i < part.end; ++i) ++done[i];
          },
          16);
      REQUIRE(std::vector<int>(count, 1) == done);
      REQUIRE(aligned);
    }
}

TEST_CASE("cores are listed by ranges") {
  cpu_set_t before, some;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  CPU_ZERO(&some);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_SET(first, &some);
  std::string expected = std::to_string(first);
  if (CPU_ISSET(first + 1, &before)) {
    CPU_SET(first + 1, &some);
    expected += "-" + std::to_string(first + 1);
  }
  REQUIRE(sched_setaffinity(0, sizeof some, &some) == 0);
  const std::string list = CoreMask::of(0).text();
  sched_setaffinity(0, sizeof before, &before);
  REQUIRE(list == expected);
}
