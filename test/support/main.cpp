// The main of every test program: Catch's own in version 3, ours in version 2, and a world of ranks for both.
#define CATCH_CONFIG_RUNNER
#include "support/catch.hpp"
#include "support/ranks.hpp"

int main(int argc, char** argv) {
  return ronda::test::with_world(argc, argv, [&] { return Catch::Session().run(argc, argv); });
}
