// A program that fails in the way its first argument says; check_launch.sh looks at what comes of it.
#include <ronda/collectives/launch.hpp>
#include <ronda/collectives/mpi_world.hpp>
#include <ronda/core/error.hpp>

#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>

namespace {

using namespace ronda;

bool prepare(const std::string& how, bool first) {
  if (how == "help") {
    std::cout << "the help\n";
    return false;
  }
  if (how == "bad-option") throw InputError("unknown option --frobnicate");
  if (how == "bad-option-on-one" && !first) throw InputError("no such file");
  if (how == "bad-variable-on-one" && !first) setenv("RONDA_RANKS_PER_NODE", "many", 1);
  return true;
}

int run(World& world, const std::string& how) {
  const bool last = world.rank() + 1 == world.size();
  if (how == "agreed")
    agree(world.communicator(), [&] {
      if (last) throw InputError("no such file");
    });
  if (how == "one-throws" && last) throw std::runtime_error("lost my way");
  if (how == "all-bad-input") throw InputError("no such data");
  if (how == "finalize-early") MPI_Finalize();
  if (how == "finalize-at-end") {
    if (world.rank() == 0) std::cout << "finalized by the program\n";
    MPI_Finalize();
    return 0;
  }
  if (how == "all-throw") throw LogicError("the same everywhere");
  if (how == "result") {
    if (world.rank() == 0) std::cout << "ending with 75\n";
    return 75;
  }
  if (how == "count" && world.rank() == 0) std::cout << "a world of " << world.size() << "\n";
  Communicator communicator = world.communicator();
  communicator.barrier();  // where the others wait
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const bool first = rank == nullptr || std::string(rank) == "0";
  return launch(
      argc, argv, [&](WorldOptions&) { return prepare(how, first); }, [&](World& world) { return run(world, how); });
}
