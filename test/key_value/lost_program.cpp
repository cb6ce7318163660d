// lost_program HOW: two workers and a server, of which one stops, is late, or fails. What is to come of it stands in
// CMakeLists.txt.
#include <ronda/collectives/launch.hpp>
#include <ronda/core/error.hpp>
#include <ronda/runtime/key_value/key_value_store.hpp>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace ronda;

void be_odd(const std::string& how, int rank, int step) {
  if (rank != 1 || step != 3) return;
  if (how == "worker-late" || how == "throws") std::this_thread::sleep_for(std::chrono::minutes(1));
  if (how == "worker-stops") raise(SIGSTOP);
  if (how == "worker-throws") throw InputError("this worker has an error of its own");
}

int run(World& world, const std::string& how) {
  KeyValueStore store(world.communicator());
  store.set_updater([&](const KeyPart&, std::uint64_t update, std::span<float> values, std::span<const float>) {
    if (update == 3 && how == "server-stops") raise(SIGSTOP);
    if (update == 3 && how == "update-throws") throw InputError("this update does not work");
    values[0] += 1;
  });
  std::vector<float> values(100'000);
  store.run([&] {
    store.init("values", values);
    for (int step = 1; step <= 10; ++step) {
      be_odd(how, world.rank(), step);
      store.push("values", values);
      store.pull("values", values);
    }
  });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  return launch(
      argc, argv,
      [&](WorldOptions& options) {
        options.communication_timeout = 0.5;
        if (how == "throws") options.on_stall = [](const Stall&) {};  // then what waits fails
        return true;
      },
      [&](World& world) { return run(world, how); });
}
