// Two worlds of one process, each with a thread of its own, and worlds that come and go: at MPI_THREAD_SERIALIZED no
// two threads may be inside MPI at a time, and no two worlds may wait in it for each other. This program stands between
// Ronda and MPI, and counts.
#include <ronda/collectives/mpi_world.hpp>
#include <ronda/core/error.hpp>

#include <atomic>
#include <cstdio>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<int> inside{0};
std::atomic<long> overlaps{0}, calls{0};

class Counted {
 public:
  Counted() {
    ++calls;
    if (inside.fetch_add(1) > 0) ++overlaps;
  }
  Counted(const Counted&) = delete;
  ~Counted() { --inside; }
};

}  // namespace

// NOLINTBEGIN: MPI's names and types
#define COUNTED(name, parameters, arguments) \
  extern "C" int MPI_##name parameters {     \
    const Counted counted;                   \
    return PMPI_##name arguments;            \
  }
COUNTED(Isend, (const void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Request* g), (a, b, c, d, e, f, g))
COUNTED(Irecv, (void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Request* g), (a, b, c, d, e, f, g))
COUNTED(Test, (MPI_Request * a, int* b, MPI_Status* c), (a, b, c))
COUNTED(Cancel, (MPI_Request * a), (a))
COUNTED(Barrier, (MPI_Comm a), (a))
COUNTED(Ibarrier, (MPI_Comm a, MPI_Request* b), (a, b))
COUNTED(Bcast, (void* a, int b, MPI_Datatype c, int d, MPI_Comm e), (a, b, c, d, e))
COUNTED(Allgather, (const void* a, int b, MPI_Datatype c, void* d, int e, MPI_Datatype f, MPI_Comm g),
        (a, b, c, d, e, f, g))
COUNTED(Allreduce, (const void* a, void* b, int c, MPI_Datatype d, MPI_Op e, MPI_Comm f), (a, b, c, d, e, f))
COUNTED(Iallreduce, (const void* a, void* b, int c, MPI_Datatype d, MPI_Op e, MPI_Comm f, MPI_Request* g),
        (a, b, c, d, e, f, g))
COUNTED(Comm_dup, (MPI_Comm a, MPI_Comm* b), (a, b))
COUNTED(Comm_create_group, (MPI_Comm a, MPI_Group b, int c, MPI_Comm* d), (a, b, c, d))
COUNTED(Comm_split, (MPI_Comm a, int b, int c, MPI_Comm* d), (a, b, c, d))
COUNTED(Comm_free, (MPI_Comm * a), (a))
COUNTED(Comm_rank, (MPI_Comm a, int* b), (a, b))
COUNTED(Comm_size, (MPI_Comm a, int* b), (a, b))
#undef COUNTED
// NOLINTEND

namespace {

using namespace ronda;

void reduce_many(Communicator group, int times) {
  std::vector<float> values(30'000), few(10);
  const auto reduction =
      group.plan(AllreduceSpec{{Tensor(std::span(values))}, ReduceOp::sum, AllreduceAlgorithm::ring, "many"});
  for (int i = 0; i < times; ++i) {
    const Event done = reduction->start();
    if (i % 50 == 0) group.barrier();
    done.wait();
    if (i % 100 == 0) group.allreduce(Tensor(std::span(few)));
    if (i % 200 == 0) group = group.split(0, group.rank());
  }
}

/// Planning and splitting wait inside MPI for the other ranks: worlds that do so at once must not wait for each other.
void plan_many(Communicator group, int times) {
  std::vector<float> values(1000);
  for (int i = 0; i < times; ++i) {
    const auto reduction = group.plan(AllreduceSpec{{Tensor(std::span(values))}});
    if (i % 5 == 0) static_cast<void>(group.split(0, group.rank()));
    reduction->start().wait();
  }
}

/// Worlds that begin and end meanwhile.
void begin_many(int times) {
  for (int i = 0; i < times; ++i) {
    const World another = World::adopt(MPI_COMM_WORLD, {.progress = Progress::inline_});
    Communicator group = another.communicator();
    group.barrier();
  }
}

/// In a world beside the first, which goes on meanwhile.
void attack(World& world) {
  Communicator all = world.communicator();
  std::vector<float> values(100'000);
  const auto reduction =
      all.plan(AllreduceSpec{{Tensor(std::span(values))}, ReduceOp::sum, AllreduceAlgorithm::ring, "first"});
  for (int i = 0; i < 5; ++i) {
    const Event done = reduction->start();
    {
      World second = World::adopt(MPI_COMM_WORLD, {.progress = Progress::inline_});
      reduce_many(second.communicator(), 100);
    }
    done.wait();
  }
  World second = World::adopt(MPI_COMM_WORLD, {.progress = Progress::inline_});
  std::thread other([&] { reduce_many(second.communicator(), 400); });
  reduce_many(all, 400);
  other.join();
  std::thread planning([&] { plan_many(second.communicator(), 100); });
  plan_many(all, 100);
  planning.join();
  std::thread beginning([&] { begin_many(20); });
  plan_many(all, 100);
  beginning.join();
}

/// A program's own calls of MPI cannot be kept apart from a thread's.
bool is_refused() {
  try {
    const World world = World::adopt(MPI_COMM_WORLD, {.progress = Progress::thread});
  } catch (const InputError& error) {
    return std::string(error.what()).find("MPI_THREAD_MULTIPLE") != std::string::npos;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  World world(argc, argv, {.progress = Progress::thread});
  attack(world);
  const bool good = overlaps == 0 && calls > 1000 && is_refused();
  if (!good) std::printf("FAILED: %ld of %ld calls were made inside others\n", overlaps.load(), calls.load());
  return good ? 0 : 1;
}
