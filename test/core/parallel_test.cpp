#include <omp.h>
#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include <ronda/core/cores.hpp>
#include <ronda/core/denormals.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/parallel.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"

using namespace ronda;
using namespace ronda::test;

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

TEST_CASE("a rank computes with the threads that are asked for, those of OMP_NUM_THREADS, or one per core") {
  const char* before = std::getenv("OMP_NUM_THREADS");
  const std::string kept = before == nullptr ? "" : before;
  unsetenv("OMP_NUM_THREADS");
  CHECK(count_threads(0, 3).count == 3);
  CHECK(count_threads(2, 3).count == 2);
  CHECK(count_threads(2, 3).note.empty());  // no note: two threads were asked for
  setenv("OMP_NUM_THREADS", "2,4", 1);
  CHECK(count_threads(3, 3).count == 3);
  CHECK(count_threads(0, 1).count == 2);
  CHECK(count_threads(0, 2).note.empty());
  const ThreadCount fewer = count_threads(0, 3);
  CHECK(fewer.count == 2);
  require_mentions(fewer.note, {"OMP_NUM_THREADS=2", "2 threads", "3 cores", ".threads = 3"});
  for (const char* none : {"", "many", "0", "-2", "99999999999999999999"}) {
    setenv("OMP_NUM_THREADS", none, 1);
    CHECK(count_threads(0, 3).count == 3);
  }
  if (before == nullptr)
    unsetenv("OMP_NUM_THREADS");
  else
    setenv("OMP_NUM_THREADS", kept.c_str(), 1);
}

TEST_CASE("threads that OpenMP does not grant are refused, and are not planned with") {
  const int levels = omp_get_max_active_levels();
  omp_set_max_active_levels(0);  // as OMP_MAX_ACTIVE_LEVELS=0
  const ThreadCount granted = count_threads(0, 3), asked = count_threads(2, 3);
  const std::string refused = message_of<InputError>([] { use_threads(2); }),
                    too_late = message_of<LogicError>([] { const FlushDenormals planned_for(2); });
  omp_set_max_active_levels(levels);
  CHECK(granted.count == 1);
  require_mentions(granted.note, {"OMP_MAX_ACTIVE_LEVELS=0", "1 thread", "3 cores"});
  CHECK(asked.count == 1);
  require_mentions(asked.note, {".threads = 2", "1 thread", "OMP_MAX_ACTIVE_LEVELS=0"});
  require_mentions(refused, {".threads = 2", "grants 1 thread", "OMP_MAX_ACTIVE_LEVELS=0", ".threads = 1"});
  require_mentions(too_late, {"2 threads", "grants 1"});
}

TEST_CASE("in a parallel region of the program no team is planned") {
  std::string refused;
#pragma omp parallel num_threads(2)
#pragma omp single
  refused = message_of<InputError>([] { use_threads(2); });
  require_mentions(refused, {".threads = 2", "parallel region"});
}

TEST_CASE("OpenMP may not change what it grants from step to step") {
  omp_set_dynamic(1);
  use_threads(1);
  CHECK(omp_get_dynamic() == 0);
}
