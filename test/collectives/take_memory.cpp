// take_memory MEBIBYTES: takes so much shared memory on each rank and gives it back, until somebody ends it.
#include <ronda/collectives/launch.hpp>

#include <chrono>
#include <cstddef>
#include <iostream>
#include <string>

int main(int argc, char** argv) {
  using namespace ronda;
  const std::size_t bytes = argc > 1 ? std::stoul(argv[1]) << 20 : 0;
  return launch(
      argc, argv, [](WorldOptions&) { return true; },
      [&](World& world) {
        Communicator communicator = world.communicator();
        const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        while (std::chrono::steady_clock::now() < end) {
          static_cast<void>(communicator.allocate(bytes, Memory::node_shared));
          for (const Message& note : communicator.take_notes()) std::cerr << note.text() << "\n";
          if (world.rank() == 0) std::cout << "taken" << std::endl;
        }
        return 0;
      });
}
