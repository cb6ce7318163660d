// Catch's own body, compiled once: its main is in version 3 a library's, in version 2 this.
#define CATCH_CONFIG_RUNNER
#include "support/catch.hpp"
#include "support/ranks.hpp"

namespace ronda::test {

int run_tests(int argc, char** argv) {
  return with_world(argc, argv, [&] { return Catch::Session().run(argc, argv); });
}

}  // namespace ronda::test
