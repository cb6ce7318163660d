#include "support/catch.hpp"

#include <ronda/runtime/trainer/slow_ranks.hpp>

#include <string>
#include <vector>

namespace ronda::slow_ranks_test {
namespace {

const HostNames hosts{"here", "there", "there"};

TEST_CASE("the rank that waited least is the one that the others waited for") {
  const std::vector<double> waited{3, 0.5, 2};
  CHECK(describe_waits(waited, 10, hosts) ==
        "the others waited for rank 1 on there: 2.000 s each (20 % of the time), while it waited 0.500 s itself");
}

TEST_CASE("where all waited about as long nobody is to blame") {
  const std::vector<double> waited{1, 1.05, 1.1};
  CHECK(describe_waits(waited, 10, hosts) == "no rank kept the others waiting: reductions took each 1.000 to 1.100 s");
}

}  // namespace
}  // namespace ronda::slow_ranks_test
