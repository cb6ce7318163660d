#include <cmath>

#include "check.hpp"

namespace compatibility {

void key_value(ronda::World& world) {
  using namespace ronda;
  if (world.size() == 1) return;  // a server, and a worker
  KeyValueStore store(world.communicator(), {.servers = 1});
  store.set_updater({.name = "sgd"}, Schedule({.learning_rate = 0.5}));
  std::vector<float> place{0, 0}, gradient(2);
  const float workers = static_cast<float>(world.size() - 1), mean = (workers - 1) / 2;
  store.run([&] {
    store.init("place", place);
    for (int step = 0; step < 30; ++step) {
      gradient = {place[0] - static_cast<float>(world.rank()), place[1] - 1};
      store.push("place", gradient);
      store.pull("place", place);
    }
    require(store.version("place") == 30, "an update a round");
    require(std::abs(place[0] - mean) < 1e-3F && std::abs(place[1] - 1) < 1e-3F, "the workers' mean");
  });
}

}  // namespace compatibility
