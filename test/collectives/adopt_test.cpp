// A program with an MPI of its own: it hands some of its ranks to Ronda, and goes on with MPI when Ronda is gone.
#include <ronda/collectives/mpi_world.hpp>
#include <ronda/core/error.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace ronda;

bool holds(bool condition, const char* what) {
  if (!condition) std::printf("FAILED: expected %s\n", what);
  return condition;
}

/// Ranks in the communicator's order, and sums over its ranks alone.
bool adopt_and_reduce(MPI_Comm communicator, Progress progress) {
  int rank = 0, size = 0;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  const World world = World::adopt(communicator, {.progress = progress});
  Communicator group = world.communicator();
  std::vector<float> values(1000, static_cast<float>(rank + 1));
  group.allreduce(Tensor(std::span(values)));
  const auto sum = static_cast<float>(size * (size + 1) / 2);
  const bool equal = values.front() == sum && values.back() == sum;
  return holds(world.rank() == rank && world.size() == size, "the communicator's ranks") & holds(equal, "their sum");
}

/// Whether all ranks get the same error if they would divide a host differently.
bool refuses_different_nodes() {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) return true;
  std::string why;
  try {
    const World world = World::adopt(MPI_COMM_WORLD, {.ranks_per_node = rank == 1 ? 2 : 0});
  } catch (const InputError& error) {
    if (error.agreed()) why = error.what();
  }
  return holds(why.find("RONDA_RANKS_PER_NODE) is 0 on rank 0 and 2 on rank 1") != std::string::npos,
               "an error for ranks that divide a host differently");
}

/// Two worlds beside each other, of two ranks each. In one a rank is late, and the other rank is told; in the other all
/// goes on.
bool stall_in_one_of_two() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const bool stalls = rank < 2;
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, stalls ? 0 : 1, rank, &half);
  std::atomic<int> told{0};
  std::atomic<bool> names_late{false};
  bool failed = false;
  {
    const World world = World::adopt(
        half, {.progress = Progress::inline_, .communication_timeout = 0.5, .on_stall = [&](const Stall& stall) {
                 if (stall.message.find("waiting for rank 1 on") != std::string::npos) names_late = true;
                 ++told;
               }});
    Communicator group = world.communicator();
    for (int i = 0; i < 80 && !stalls; ++i) {
      group.barrier();
      std::this_thread::sleep_for(std::chrono::milliseconds(rank % 2 == 0 ? 20 : 50));
    }
    if (rank == 1) std::this_thread::sleep_for(std::chrono::seconds(4));
    try {
      group.barrier();
    } catch (const CommunicationError&) {
      failed = true;
    }
  }
  MPI_Comm_free(&half);
  MPI_Barrier(MPI_COMM_WORLD);
  if (!stalls) return holds(told == 0 && !failed, "no stall in the world that goes on");
  if (!holds(failed, "an error where it stalls, of the late rank too")) return false;
  return holds(told == 1, "one word of the stall") & holds(rank == 1 || names_late, "the late rank's name");
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  if (argc > 1) {
    const bool good = stall_in_one_of_two();
    MPI_Finalize();
    return good ? 0 : 1;
  }
  bool good = adopt_and_reduce(MPI_COMM_WORLD, Progress::inline_);
  MPI_Comm even_or_odd = MPI_COMM_NULL;  // in reversed order
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &even_or_odd);
  good &= adopt_and_reduce(even_or_odd, Progress::inline_);
  good &= refuses_different_nodes();
  if (level == MPI_THREAD_MULTIPLE) good &= adopt_and_reduce(even_or_odd, Progress::thread);
  MPI_Comm_free(&even_or_odd);

  int all = good ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  MPI_Finalize();
  return all != 0 ? 0 : 1;
}
