#include "support/ranks.hpp"

#include <ronda/core/parallel.hpp>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

namespace ronda::test {
namespace {

std::optional<World>& the_world() {
  static std::optional<World> world;
  return world;
}

Progress progress_from_environment() {
  const char* name = std::getenv("RONDA_TEST_PROGRESS");
  return name == nullptr ? Progress::automatic : parse_progress(name);
}

}  // namespace

World& world() { return the_world().value(); }

int with_world(int& argc, char**& argv, const std::function<int()>& tests) {
  WorldOptions options{.progress = progress_from_environment(), .any_thread = true};
  if (std::getenv("RONDA_TEST_UNWATCHED") != nullptr) options.communication_timeout = 0;
  the_world().emplace(argc, argv, options);
  use_threads(1);  // threads that meet after each small loop take most of the time; tests of several ask for them
  int worst = 0;
  for (const auto& text : world().communicator().gather_texts(std::to_string(tests())))
    worst = std::max(worst, std::stoi(text));
  the_world().reset();
  return std::min(worst, 255);
}

}  // namespace ronda::test
