// Arenas that an update reads and writes side by side begin at different places of a page.
#include "strategy/compared_runs.hpp"
#include "strategy/device_run.hpp"
#include "strategy/named_run.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <ronda/runtime/strategy/replica/arena_memory.hpp>

namespace ronda::test::arena_memory_test {
namespace {

constexpr std::size_t page_bytes = 4096;

std::size_t place_in_page(const Buffer& arena) { return reinterpret_cast<std::uintptr_t>(arena.data()) % page_bytes; }

TEST_CASE("an arena begins at its place of a page, and all of it is there, zeroed") {
  const auto context = make_cpu_context(1);
  for (const std::size_t bytes : {std::size_t{4}, std::size_t{407'080}, (std::size_t{4} << 20) + 4})
    for (const ArenaPlace place : {ArenaPlace::values, ArenaPlace::average, ArenaPlace::masters, ArenaPlace::states}) {
      const Buffer arena = allocate_arena(place, bytes, *context);
      CHECK(place_in_page(arena) == static_cast<std::size_t>(place));
      REQUIRE(arena.bytes() == bytes);
      const std::span all(arena.data(), bytes);
      CHECK(std::ranges::all_of(all, [](std::byte byte) { return byte == std::byte{}; }));
      std::ranges::fill(all, std::byte{1});  // AddressSanitizer sees to it that this is its own
    }
  CHECK(allocate_arena(ArenaPlace::values, 0, *context).bytes() == 0);
}

/// Bytes between the places in their pages, the shorter way round.
std::size_t apart(const float* one, const float* other) {
  const std::size_t ahead =
      (reinterpret_cast<std::uintptr_t>(one) - reinterpret_cast<std::uintptr_t>(other)) % page_bytes;
  return std::min(ahead, page_bytes - ahead);
}

/// Makes the usual updater, after it has checked where the arenas of what this rank updates begin.
std::unique_ptr<Updater> make_checked(DeviceContext& context, Optimizer& optimizer, const OptimizerBindings& bindings,
                                      const LayerArenas& layers, std::size_t count, const UpdaterOptions& options,
                                      Stream& stream) {
  const std::size_t first = bindings.kept ? bindings.kept->begin : 0;
  std::vector<const float*> arenas{bindings.values + first};
  arenas.insert(arenas.end(), bindings.states.begin(), bindings.states.end());
  arenas.push_back(options.sums ? options.sums->gradients : reinterpret_cast<const float*>(layers.gradients) + first);
  if (options.average != nullptr) arenas.push_back(options.average + first);
  CHECK(arenas.size() >= 4);
  for (std::size_t i = 0; i < arenas.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      INFO("arenas " << j << " and " << i << " (values, states, gradients, average)");
      CHECK(apart(arenas[i], arenas[j]) >= 512);
    }
  return make_host_updater(context, optimizer, bindings, layers, count, options, stream);
}

/// A strategy's updates, and what it computes: nothing is written beyond an arena.
void check_places(DeviceSet set) {
  set.optimizer = "adam";
  set.make_updater = make_checked;
  const MemoryDataset data = toy_images(131, {9, 7, 1}, 4);
  DeviceRun run(everybody(), nullptr, three_layers(), data, set);
  run.steps(3);
}

TEST_CASE("the arenas of a whole model's update begin at different places of a page") {
  constexpr std::size_t always = 0, never = std::numeric_limits<std::size_t>::max();
  for (const double ema_decay : {0.0, 0.9}) {
    check_places({.ema_decay = ema_decay, .node_update_bytes = never});
    check_places({.ema_decay = ema_decay, .node_update_bytes = always});
    check_places({.ema_decay = ema_decay, .strategy = LocalSgd{.synchronise_every = 2}});
    if (everybody().size() == 1) continue;  // the others divide states
    for (const AllreduceAlgorithm algorithm : {AllreduceAlgorithm::automatic, AllreduceAlgorithm::ring}) {
      check_places({.ema_decay = ema_decay, .strategy = "sharded", .algorithm = algorithm});
      check_places({.ema_decay = ema_decay, .strategy = Sharded{.shard_gradients = true}, .algorithm = algorithm});
    }
    check_places({.ema_decay = ema_decay, .strategy = Sharded{.one_copy = true}});
  }
}

TEST_CASE("the arenas of a stage's update, and of a part's, begin at different places of a page") {
  const std::size_t ranks = rank_count();
  if (ranks == 1) return;                                       // has the whole model
  const Pipeline pipeline{.stages = ranks % 2 == 0 ? 2U : 3U};  // there are three layers to cut
  const Split split{.parts = ranks, .layers = {"dense1=columns"}};
  const MemoryDataset data = toy_images(131, {9, 7, 1}, 4);
  for (const std::string strategy : {"pipeline", "split"}) {
    const Shard shard = strategy == "split" ? split.shard(this_rank(), ranks) : pipeline.shard(this_rank(), ranks);
    NamedRun run({everybody(), strategy.c_str(), shard, 50, 4, "adam"}, three_layers(), data,
                 [&](MirroredOptions& options) {
                   if (strategy == "split")
                     options.strategy = split;
                   else
                     options.strategy = pipeline;
                   options.ema_decay = 0.9;
                   options.platform.make_updater = make_checked;
                 });
    static_cast<void>(run.step());
  }
}

TEST_CASE("no two of an update's arenas begin at one place") {
  std::set<std::size_t> places;
  for (const ArenaPlace place : {ArenaPlace::gradients, ArenaPlace::values, ArenaPlace::average, ArenaPlace::masters,
                                 place_of_state(0), place_of_state(1), place_of_state(2)})
    CHECK(places.insert(static_cast<std::size_t>(place)).second);
  for (std::size_t number = 0; number < 10; ++number) {
    const auto place = static_cast<std::size_t>(place_of_state(number));
    CHECK(place % Buffer::alignment == 0);
    CHECK(place < page_bytes);
  }
}

}  // namespace
}  // namespace ronda::test::arena_memory_test
