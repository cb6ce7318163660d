#include "support/catch.hpp"

#include <ronda/runtime/trainer/device_choice.hpp>

#include <string>
#include <vector>

namespace ronda::device_choice_test {
namespace {

const HostNames hosts{"a", "a", "b", "b", "c", "c"};

TEST_CASE("ranks that all have a GPU are not refused one") {
  CHECK(refusal_of_gpus(std::vector<std::string>(6), hosts).empty());
}

TEST_CASE("where no rank has a GPU the reason says it all") {
  CHECK(refusal_of_gpus(std::vector<std::string>(6, "no driver"), hosts) == "no driver");
  CHECK(refusal_of_gpus(std::vector<std::string>{"no driver"}, hosts) == "no driver");
}

TEST_CASE("where some have one, those that have none are named") {
  const auto without = [](std::vector<std::size_t> ranks) {
    std::vector<std::string> reasons(6);
    for (const std::size_t rank : ranks) reasons[rank] = "no driver";
    return refusal_of_gpus(reasons, hosts);
  };
  CHECK(without({3}) == "rank 3 on b has no GPU to use, others have: no driver");
  CHECK(without({1, 4}) == "rank 1 on a, rank 4 on c have no GPU to use, others have: no driver");
  CHECK(without({0, 1, 2, 3, 5}) ==
        "rank 0 on a, rank 1 on a, rank 2 on b, rank 3 on b and 1 more have no GPU to use, others have: no driver");
}

}  // namespace
}  // namespace ronda::device_choice_test
