// Two worlds on two threads, while the program calls MPI itself, at MPI_THREAD_MULTIPLE. A call of MPI that waits for
// other ranks may wait for another thread of any rank, for example for the identifier of a communicator that the
// program makes. This program intercepts Ronda's calls of MPI: each such call of the first thread returns only after
// the second thread has completed another allreduce and made another communicator. So Ronda must not keep the second
// thread out of MPI meanwhile.
#include <ronda/collectives/mpi_world.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <span>
#include <thread>
#include <vector>

namespace {

std::atomic<long> rounds{0};  ///< completed by the second thread
std::atomic<bool> ends{false};
thread_local bool is_first = false;

/// Waits for a round that began after this call.
void await_the_second_thread() {
  if (!is_first) return;
  for (const long next = rounds + 2; rounds < next && !ends;) std::this_thread::yield();
}

}  // namespace

// NOLINTBEGIN: MPI's names and types
#define AWAITED(name, parameters, arguments) \
  extern "C" int MPI_##name parameters {     \
    await_the_second_thread();               \
    return PMPI_##name arguments;            \
  }
AWAITED(Barrier, (MPI_Comm a), (a))
AWAITED(Bcast, (void* a, int b, MPI_Datatype c, int d, MPI_Comm e), (a, b, c, d, e))
AWAITED(Allgather, (const void* a, int b, MPI_Datatype c, void* d, int e, MPI_Datatype f, MPI_Comm g),
        (a, b, c, d, e, f, g))
AWAITED(Allgatherv,
        (const void* a, int b, MPI_Datatype c, void* d, const int* e, const int* f, MPI_Datatype g, MPI_Comm h),
        (a, b, c, d, e, f, g, h))
AWAITED(Alltoall, (const void* a, int b, MPI_Datatype c, void* d, int e, MPI_Datatype f, MPI_Comm g),
        (a, b, c, d, e, f, g))
AWAITED(Allreduce, (const void* a, void* b, int c, MPI_Datatype d, MPI_Op e, MPI_Comm f), (a, b, c, d, e, f))
AWAITED(Comm_dup, (MPI_Comm a, MPI_Comm* b), (a, b))
AWAITED(Comm_create_group, (MPI_Comm a, MPI_Group b, int c, MPI_Comm* d), (a, b, c, d))
AWAITED(Comm_split, (MPI_Comm a, int b, int c, MPI_Comm* d), (a, b, c, d))
AWAITED(Comm_split_type, (MPI_Comm a, int b, int c, MPI_Info d, MPI_Comm* e), (a, b, c, d, e))
#undef AWAITED
// NOLINTEND

namespace {

using namespace ronda;

/// Every call in which Ronda lets MPI wait for other ranks.
void set_up(MPI_Comm communicator) {
  is_first = true;
  World world = World::adopt(communicator);
  Communicator all = world.communicator();
  std::vector<float> values(1000, 1);
  const Tensor tensor{std::span(values)};
  Communicator part = all.split(0, all.rank());
  part.allreduce(tensor);
  Communicator others = all.split(all.rank() == 0 ? 0 : 1, all.rank());
  others.plan(AllreduceSpec{{tensor}, ReduceOp::sum, AllreduceAlgorithm::mpi, "of some by MPI"})->start().wait();
  const Buffer memory = all.allocate(4096, Memory::node_shared);
  all.plan(AllreduceSpec{{tensor}, ReduceOp::sum, AllreduceAlgorithm::mpi, "by MPI"})->start().wait();
  const std::vector<std::size_t> counts(static_cast<std::size_t>(all.size()), 1);
  std::vector<float> outgoing(counts.size()), incoming(counts.size());
  all.plan(AlltoallSpec{Tensor(std::span(outgoing)), Tensor(std::span(incoming)), counts, counts})->start().wait();
}

/// Runs allreduces of another world, and makes communicators, until the first thread is done on all ranks.
void go_on_beside(World& world, MPI_Comm own, const std::atomic<bool>& done) {
  Communicator all = world.communicator();
  std::vector<float> unfinished(1);
  do {
    unfinished[0] = done ? 0 : 1;
    all.allreduce(Tensor(std::span(unfinished)), ReduceOp::maximum);
    MPI_Comm copy = MPI_COMM_NULL, part = MPI_COMM_NULL;
    MPI_Comm_dup(own, &copy);
    MPI_Comm_split(own, 0, all.rank(), &part);
    MPI_Comm_free(&part);
    MPI_Comm_free(&copy);
    ++rounds;
  } while (unfinished[0] > 0);
  ends = true;
}

}  // namespace

int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  if (level < MPI_THREAD_MULTIPLE) return std::puts("this MPI has no MPI_THREAD_MULTIPLE"), 77;
  std::array<MPI_Comm, 3> copies{};
  for (MPI_Comm& copy : copies) MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  // Open MPI makes one communicator at a time, the one with the oldest parent first. The second thread's parent is the
  // oldest, so its communicators never wait for those of the first thread, which wait for it here.
  {
    World world = World::adopt(copies[2], {.progress = Progress::inline_});
    std::atomic<bool> done = false;
    std::thread first([&] {
      set_up(copies[1]);
      done = true;
    });
    go_on_beside(world, copies[0], done);
    first.join();
  }
  for (MPI_Comm& copy : copies) MPI_Comm_free(&copy);
  MPI_Finalize();
  return 0;
}
