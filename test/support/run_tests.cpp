// Runs Catch's tests within a world. Catch's own main is in version 3 a library's; in version 2 a package may have it
// ready, as catch_main (test/CMakeLists.txt), or else its body is compiled here, once.
#ifdef RONDA_CATCH_BODY
extern "C" int catch_main(int argc, char** argv);
#else
#define CATCH_CONFIG_RUNNER
#include "support/catch.hpp"
#endif
#include "support/ranks.hpp"

namespace ronda::test {

int run_tests(int argc, char** argv) {
#ifdef RONDA_CATCH_BODY
  return with_world(argc, argv, [&] { return catch_main(argc, argv); });
#else
  return with_world(argc, argv, [&] { return Catch::Session().run(argc, argv); });
#endif
}

}  // namespace ronda::test
