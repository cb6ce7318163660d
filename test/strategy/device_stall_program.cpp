// device_stall_program HOW:WAY: ranks that train on devices, which are threads here; in the sixth step the last one's
// host does not come (`late`), or its device stands still (`hangs`). What is to come of it stands in CMakeLists.txt.
#include "strategy/device_run.hpp"
#include "support/toy_data.hpp"

#include <ronda/collectives/launch.hpp>

#include <chrono>
#include <iostream>
#include <string>
#include <thread>

using namespace ronda;
using namespace ronda::test;

namespace {

int run(World& world, const std::string& how, AllreduceAlgorithm way) {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  const Devices devices(world.communicator(), way);
  DeviceRun training(devices, Sequential(Flatten(), Dense(33), ReLU(), Dense(4)), data, {.global_batch = 32});
  training.steps(5);
  if (world.rank() + 1 == world.size()) {
    if (how == "hangs") training.stream().hang_after(2);  // the batch is there, and the step has begun
    if (how == "late") std::this_thread::sleep_for(std::chrono::minutes(1));
  }
  training.step();
  if (world.rank() == 0) std::cout << "done\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string wish = argc > 1 ? argv[1] : "", how = wish.substr(0, wish.find(':'));
  return launch(
      argc, argv,
      [&](WorldOptions& options) {
        options.communication_timeout = 0.5;
        if (how == "throws") options.on_stall = [](const Stall&) {};  // then who waits fails
        return true;
      },
      [&](World& world) {
        return run(world, how == "throws" ? "late" : how, parse_allreduce(wish.substr(wish.find(':') + 1)));
      });
}
