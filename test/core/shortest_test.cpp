#include <ronda/core/text.hpp>

#include <cmath>
#include <limits>

#include "support/catch.hpp"

using namespace ronda;

TEST_CASE("a number is written in the fewest digits that read back to it") {
  CHECK(shortest(0.1) == "0.1");
  CHECK(shortest(0.1F) == "0.1");
  CHECK(shortest(1e-40) == "1e-40");
  CHECK(shortest(-2.0) == "-2");
  CHECK(shortest(0.1 + 0.2) == "0.30000000000000004");
  CHECK(shortest(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(shortest(std::nan("")) == "nan");
}
