#include "support/ranks.hpp"

#include "support/rank_threads.hpp"

#include <ronda/collectives/fabric/threads/thread_fabric.hpp>
#include <ronda/core/parallel.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ronda::test {
namespace {

std::optional<World>& the_world() {
  static std::optional<World> world;
  return world;
}

WorldOptions options() {
  WorldOptions options{.any_thread = true};
  if (const char* progress = std::getenv("RONDA_TEST_PROGRESS")) options.progress = parse_progress(progress);
  return options;
}

/// Ranks that are threads, each with its world.
class ThreadWorlds {
 public:
  explicit ThreadWorlds(int ranks) : worlds_(static_cast<std::size_t>(ranks)) {
    const auto network = std::make_shared<ThreadNetwork>(ranks);
    threads_.run(ranks, [&](int rank) {
      use_threads(1);
      WorldOptions unwatched = options();
      unwatched.communication_timeout = 0;  // ctest's limit ends a test that hangs
      auto& mine = worlds_[static_cast<std::size_t>(rank)];
      mine = std::make_unique<World>(std::make_unique<ThreadFabric>(network, rank), unwatched);
      own_ = mine.get();
    });
  }
  ThreadWorlds(const ThreadWorlds&) = delete;
  ~ThreadWorlds() {
    threads_.run(size(), [&](int rank) { worlds_[static_cast<std::size_t>(rank)].reset(); });
  }

  void run(const std::function<void()>& body) {
    threads_.run(size(), [&](int rank) {
      try {
        body();
      } catch (const std::exception& error) {  // the others may wait for this rank until the test's limit
        std::cerr << "rank " + std::to_string(rank) + ": " + error.what() + "\n";
        throw;
      }
    });
  }
  [[nodiscard]] static World* own() noexcept { return own_; }

 private:
  [[nodiscard]] int size() const noexcept { return static_cast<int>(worlds_.size()); }

  static thread_local World* own_;              ///< of this thread's rank
  std::vector<std::unique_ptr<World>> worlds_;  ///< by rank
  RankThreads threads_;
};

thread_local World* ThreadWorlds::own_ = nullptr;

std::optional<ThreadWorlds>& thread_worlds() {
  static std::optional<ThreadWorlds> worlds;
  return worlds;
}

}  // namespace

World& world() {
  World* const of_thread = ThreadWorlds::own();
  return of_thread != nullptr ? *of_thread : the_world().value();
}

bool ranks_are_threads() { return thread_worlds().has_value(); }

void on_ranks(const std::function<void()>& body) {
  if (ranks_are_threads())
    thread_worlds()->run(body);
  else
    body();
}

int with_world(int& argc, char**& argv, const std::function<int()>& tests) {
  if (const char* ranks = std::getenv("RONDA_TEST_THREADS")) {
    thread_worlds().emplace(std::stoi(ranks));
    const int result = tests();
    thread_worlds().reset();
    return std::min(result, 255);
  }
  WorldOptions watched = options();
  if (std::getenv("RONDA_TEST_UNWATCHED") != nullptr) watched.communication_timeout = 0;
  the_world().emplace(argc, argv, watched);
  use_threads(1);  // threads that meet after each small loop take most of the time; tests of several ask for them
  int worst = 0;
  for (const auto& text : world().communicator().gather_texts(std::to_string(tests())))
    worst = std::max(worst, std::stoi(text));
  the_world().reset();
  return std::min(worst, 255);
}

}  // namespace ronda::test
