#include <ronda/core/text.hpp>

#include "support/catch.hpp"

using namespace ronda;

TEST_CASE("what is counted has its plural, and bytes their unit") {
  CHECK(counted(1, "epoch") == "1 epoch");
  CHECK(counted(2, "epoch") == "2 epochs");
  CHECK(counted(0, "batch") == "0 batches");
  CHECK(counted(-3, "step") == "-3 steps");
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1536) == "1.5 KiB");
  CHECK(human_bytes(std::size_t{3} << 40) == "3.0 TiB");
  CHECK(human_bytes(std::size_t{5000} << 40) == "5000.0 TiB");
}
