#include <atomic>
#include <limits>

#include <ronda/core/denormals.hpp>
#include <ronda/core/parallel.hpp>

#include "support/catch.hpp"

using namespace ronda;

namespace {

/// Half of the smallest normal number, computed now.
float half_of_the_smallest() {
  volatile float smallest = std::numeric_limits<float>::min();
  volatile float half = smallest * 0.5F;
  return half;
}

/// Threads of the team that compute with denormal numbers as zeros.
int threads_that_flush(int threads) {
  std::atomic<int> flush{0};
#pragma omp parallel num_threads(threads)
  flush += DenormalScope::flushes() ? 1 : 0;
  return flush;
}

#if defined(__x86_64__) || defined(__aarch64__)
TEST_CASE("a scope makes denormal numbers zero, and its end leaves the thread as it was") {
  CHECK(half_of_the_smallest() > 0);
  {
    const DenormalScope flushing(true);
    CHECK(half_of_the_smallest() == 0);
    {
      const DenormalScope exact(false);
      CHECK(half_of_the_smallest() > 0);
    }
    CHECK(half_of_the_smallest() == 0);
  }
  CHECK(half_of_the_smallest() > 0);
}

TEST_CASE("all threads of a team flush as long as its scope lives, the innermost of several included") {
  constexpr int threads = 3;
  CHECK(threads_that_flush(threads) == 0);
  {
    const FlushDenormals flushing(threads);
    CHECK(threads_that_flush(threads) == threads);
    { const FlushDenormals again(threads); }
    CHECK(threads_that_flush(threads) == threads);
  }
  CHECK(threads_that_flush(threads) == 0);
}

TEST_CASE("parallel work is done as its caller computes") {
  const auto flushing_workers = [] {
    std::atomic<int> flush{0};
    parallel_for(4, 4, [&](Range) { flush += DenormalScope::flushes() ? 1 : 0; });
    return flush.load();
  };
  CHECK(flushing_workers() == 0);
  const DenormalScope flushing(true);
  CHECK(flushing_workers() == 4);
}
#endif

}  // namespace
