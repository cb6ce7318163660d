#include "support/catch.hpp"
#include "support/message.hpp"

#include <ronda/runtime/trainer/binding.hpp>

using namespace ronda;
using namespace ronda::test;

namespace binding_test {

TEST_CASE("threads that have a core each are no reason to complain") {
  REQUIRE(why_too_many_threads(2, {.mine = 2, .bound = 2}, 2, 8, 1).empty());
  REQUIRE(
      why_too_many_threads(1, {.mine = 0.25, .bound = 0.25}, 2, 2, 8).empty());  // more ranks than cores was asked for
  REQUIRE(why_too_many_threads(2, {.mine = 2.5, .bound = 8}, 8, 8, 1).empty());
}

TEST_CASE("threads beyond the cores that a rank may use are told with the reason and the remedy") {
  require_mentions(
      why_too_many_threads(2, {.mine = 1, .bound = 1}, 1, 8, 4),
      {"2 threads on 1 core of 8", "bound", "mpirun --bind-to none", "slot:PE=2", "--cpus-per-task=2", ".threads = 1"});
  require_mentions(why_too_many_threads(64, {.mine = 8, .bound = 8}, 8, 8, 1),
                   {"64 threads on 8 cores of 8, and there are no more", "take .threads = 8"});
  require_mentions(
      why_too_many_threads(4, {.mine = 0.25, .bound = 0.25}, 2, 2, 8),
      {"4 threads on 1 core", "part of 2 cores that it shares with other ranks", "fewer ranks", ".threads = 1"});
}

TEST_CASE("a quota counts as what it leaves") {
  require_mentions(why_too_many_threads(8, {.mine = 1.5, .bound = 8}, 8, 8, 1),
                   {"8 threads on the time of 1.5 cores", "quota", "docker run --cpus", ".threads = 1"});
  const std::string one_each = why_too_many_threads(1, {.mine = 0.5, .bound = 2}, 8, 8, 4).text();
  require_mentions(one_each, {"1 thread on the time of 0.5 cores", "start fewer ranks"});
  REQUIRE(one_each.find(".threads") == std::string::npos);
}

}  // namespace binding_test
