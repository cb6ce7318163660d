// Allreduce by each algorithm on simulated hosts, one rank on each; the time is the simulator's. For simulate.sh.
//
//   simulated_allreduce check|time BITS_PER_SECOND COSTS MESSAGE_BYTES BYTES,… ALGORITHM…
//
// `check` looks at all results. `time` gives all ranks the same block of memory again and again, for their data and for
// what the algorithms need, so that hundreds of them fit into one machine: their times are right, their results are
// not. What messages cost is read from the file COSTS, or measured and written there. The ring's messages are as long
// as it likes, or of MESSAGE_BYTES.
#include "support/operands.hpp"

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/host/algorithms/ring.hpp>
#include <ronda/collectives/fabric/mpi/mpi_transport.hpp>
#include <ronda/collectives/link_costs.hpp>
#include <ronda/collectives/mpi_world.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/error.hpp>

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

/// Stands for MPI_Test in the whole program (see CMakeLists.txt): a rank that waits for a message waits in the
/// simulator. Right where a rank does nothing beside one collective.
int ronda_simulated_test(MPI_Request* request, int* done, MPI_Status* status) {
  *done = 1;
  return PMPI_Wait(request, status);
}

/// Stands for MPI_Iallreduce, which the simulator has by another algorithm than its own MPI_Allreduce, with wrong sums.
int ronda_simulated_iallreduce(const void* mine, void* all, int count, MPI_Datatype type, MPI_Op op,
                               MPI_Comm communicator, MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  return PMPI_Allreduce(mine, all, count, type, op, communicator);
}

namespace {

/// Whether long buffers are all the same memory. Global because Buffer::host has no other way to know; the simulator
/// gives each rank its own globals.
bool all_in_one_block = false;

}  // namespace

/// Stands for the runtime's own in the whole program.
ronda::Buffer ronda::Buffer::host(std::size_t bytes) {
  if (bytes == 0) return {};
  const bool shared = all_in_one_block && bytes >= (std::size_t{1} << 20);
  const std::size_t rounded = aligned(bytes);
  void* memory = shared ? SMPI_SHARED_MALLOC(rounded) : std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw ResourceError("cannot allocate " + std::to_string(bytes) + " bytes of memory");
  if (!shared) std::memset(memory, 0, rounded);
  return {static_cast<std::byte*>(memory), bytes, Device{},
          std::shared_ptr<const void>(memory, [shared](const void* p) {
            shared ? SMPI_SHARED_FREE(const_cast<void*>(p)) : std::free(const_cast<void*>(p));
          })};
}

namespace {

using namespace ronda;

/// The slowest rank's seconds for `work`.
template <class Work>
double seconds(Work&& work) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  work();
  const double mine = MPI_Wtime() - start;
  double slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

/// A ring whose messages are longer, of which the simulator has fewer to move.
double ring_seconds(std::span<float> data, int ranks, std::size_t message_bytes) {
  const mpi::Communicator communicator = mpi::Communicator::duplicate(MPI_COMM_WORLD);
  int rank = 0;
  MPI_Comm_rank(communicator.handle(), &rank);
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  Ring ring(std::make_unique<MpiTransport>(communicator.handle(), rank,
                                           std::make_shared<const std::vector<int>>(std::move(all)), FabricChannel(1)),
            {reinterpret_cast<std::byte*>(data.data()), data.size(), DType::float32}, {ReduceOp::sum, ranks},
            RingPart::allreduce, {}, message_bytes);
  ring.prepare();
  return seconds([&] {
    Task task = ring.run();
    while (!task.done()) task.advance();
    task.result();
  });
}

/// So that one number of hosts measures once.
void take_costs(Communicator& all, const std::string& file) {
  std::ostringstream known;
  if (all.rank() == 0) known << std::ifstream(file).rdbuf();
  std::string text = known.str();
  text = all.broadcast_text(text.substr(0, text.find('\n')));
  if (!text.empty()) all.use_link_costs(LinkCosts::parse(text));
}

void keep_costs(const Communicator& all, const std::string& file) {
  if (all.rank() == 0 && all.known_link_costs() != nullptr)
    std::ofstream(file) << all.known_link_costs()->text() << '\n';
}

std::vector<std::size_t> numbers(const std::string& text) {
  std::vector<std::size_t> numbers;
  std::istringstream in(text);
  for (std::string one; std::getline(in, one, ',');) numbers.push_back(std::stoull(one));
  return numbers;
}

std::size_t wrong_results(std::span<const float> data, int ranks) {
  double mine = static_cast<double>(test::count_wrong<float>(ReduceOp::sum, data, ranks)), total = 0;
  MPI_Allreduce(&mine, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return static_cast<std::size_t>(total);
}

struct Plan {
  bool checks;
  double bits_per_second;
  std::size_t message_bytes;
  std::vector<std::string> algorithms;
};

/// All algorithms for one size: a line each. Returns how many results are wrong.
std::size_t simulate(Communicator all, std::size_t bytes, const Plan& plan) {
  const std::size_t count = bytes / sizeof(float);
  const int ranks = all.size();
  const Buffer memory = Buffer::host(count * sizeof(float));
  const std::span<float> data(reinterpret_cast<float*>(memory.data()), count);
  const double least = static_cast<double>(bytes) * 8 * 2 * (ranks - 1) / ranks / plan.bits_per_second;
  double best = std::numeric_limits<double>::infinity();
  std::size_t wrong = 0;
  for (const std::string& name : plan.algorithms) {
    if (plan.checks) test::fill_operands<float>(ReduceOp::sum, data, all.rank());
    std::string how = name;
    double took = 0;
    if (name == "ring" && plan.message_bytes > 0) {
      took = ring_seconds(data, ranks, plan.message_bytes);
    } else {
      const auto planned = all.plan(AllreduceSpec{{Tensor(data)}, ReduceOp::sum, parse_allreduce(name), "simulated"});
      if (name == "auto") how += ": " + std::string(planned->algorithm());
      took = seconds([&] { planned->start().wait(); });
    }
    const std::size_t here = plan.checks ? wrong_results(data, ranks) : 0;
    wrong += here;
    best = std::min(best, took);
    if (all.rank() != 0) continue;
    std::printf("| %d | %zu | %s | %.4f ms | %.2f | %.2f |%s\n", ranks, data.size_bytes(), how.c_str(), took * 1e3,
                took / least, took / best, here == 0 ? "" : " WRONG");
    std::fflush(stdout);
  }
  return wrong;
}

int run(int& argc, char**& argv) {
  const World world(argc, argv, {.progress = Progress::inline_, .communication_timeout = 0});
  if (argc < 7)
    throw std::invalid_argument(
        "usage: simulated_allreduce check|time BITS_PER_SECOND COSTS MESSAGE_BYTES BYTES,… ALGORITHM…");
  const Plan plan{
      std::strcmp(argv[1], "check") == 0, std::stod(argv[2]), std::stoull(argv[4]), {argv + 6, argv + argc}};
  all_in_one_block = !plan.checks;
  Communicator all = world.communicator();
  take_costs(all, argv[3]);
  std::size_t wrong = 0;
  for (const std::size_t bytes : numbers(argv[5])) wrong += simulate(all, bytes, plan);
  keep_costs(all, argv[3]);
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
