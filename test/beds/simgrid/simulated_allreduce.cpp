// Allreduce by each algorithm on simulated hosts, one rank on each; the time is the simulator's. For simulate.sh.
//
//   simulated_allreduce check|time BITS_PER_SECOND BYTES ALGORITHM…
//
// `check` looks at all results. `time` gives all ranks the same small block of memory again and again, so that hundreds
// of them fit into one machine: their times are right, their results are not.
#include "support/operands.hpp"

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/mpi_world.hpp>

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

/// Stands for MPI_Test in the whole program (see CMakeLists.txt): a rank that waits for a message waits in the
/// simulator. Right where a rank does nothing beside one collective.
int ronda_simulated_test(MPI_Request* request, int* done, MPI_Status* status) {
  *done = 1;
  return PMPI_Wait(request, status);
}

namespace {

using namespace ronda;

class SharedBlock {
 public:
  explicit SharedBlock(std::size_t bytes) : memory_(SMPI_SHARED_MALLOC(bytes)) {}
  SharedBlock(const SharedBlock&) = delete;
  ~SharedBlock() { SMPI_SHARED_FREE(memory_); }
  [[nodiscard]] float* data() const { return static_cast<float*>(memory_); }

 private:
  void* memory_;
};

/// The slowest rank's seconds for one allreduce of `data`.
double seconds(Communicator& all, std::span<float> data, AllreduceAlgorithm algorithm, std::string& chosen) {
  const auto plan = all.plan(AllreduceSpec{{Tensor(data)}, ReduceOp::sum, algorithm, "simulated"});
  chosen = plan->algorithm();
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  plan->start().wait();
  const double mine = MPI_Wtime() - start;
  double slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

std::size_t wrong_results(std::span<const float> data, int ranks) {
  double mine = static_cast<double>(test::count_wrong<float>(ReduceOp::sum, data, ranks)), total = 0;
  MPI_Allreduce(&mine, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return static_cast<std::size_t>(total);
}

int run(int& argc, char**& argv) {
  const World world(argc, argv, {.progress = Progress::inline_, .communication_timeout = 0});
  if (argc < 5) throw std::invalid_argument("usage: simulated_allreduce check|time BITS_PER_SECOND BYTES ALGORITHM…");
  const bool checks = std::strcmp(argv[1], "check") == 0;
  const double bits_per_second = std::stod(argv[2]);
  const std::size_t count = std::stoull(argv[3]) / sizeof(float);
  Communicator all = world.communicator();
  const int ranks = all.size();

  std::vector<float> own(checks ? count : 0);
  const SharedBlock shared(checks ? sizeof(float) : count * sizeof(float));
  const std::span<float> data = checks ? std::span(own) : std::span(shared.data(), count);
  const double bits = static_cast<double>(data.size_bytes()) * 8 * 2 * (ranks - 1) / ranks;
  std::size_t wrong = 0;
  for (int i = 4; i < argc; ++i) {
    if (checks) test::fill_operands<float>(ReduceOp::sum, data, world.rank());
    std::string algorithm;
    const double took = seconds(all, data, parse_allreduce(argv[i]), algorithm);
    const std::size_t here = checks ? wrong_results(data, ranks) : 0;
    wrong += here;
    if (world.rank() != 0) continue;
    std::printf("| %d | %zu | %s | %.3f ms | %.2f |%s\n", ranks, data.size_bytes(), algorithm.c_str(), took * 1e3,
                took / (bits / bits_per_second), here == 0 ? "" : " WRONG");
    std::fflush(stdout);
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "simulated_allreduce: %s\n", error.what());
    return 1;
  }
}
