#pragma once
#include <cstdint>
#include <cstdlib>
#include <string>

namespace ronda::test {

/// Of what a test draws at random: 1, so that each run draws the same, or RONDA_TEST_SEED, by which scripts/attack.sh
/// has another one in each round. A test that draws says it where it fails: INFO("seed " << seed()).
[[nodiscard]] inline std::uint64_t seed() {
  const char* text = std::getenv("RONDA_TEST_SEED");
  return text == nullptr ? 1 : std::stoull(text);
}

}  // namespace ronda::test
