#pragma once
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <ronda/collectives/world.hpp>

namespace ronda::test {

/// The ranks that mpirun started this test program with; on a thread of `on_ranks`, the ranks that are threads.
[[nodiscard]] World& world();

/// Runs `body` on every rank: here, or on threads that are ranks if the program was asked for these. Collective; throws
/// what the first rank throws that does.
void on_ranks(const std::function<void()>& body);
/// Whether ranks are threads of this program.
[[nodiscard]] bool ranks_are_threads();

/// Makes the world, runs the tests in it, and returns the worst rank's result on every rank. RONDA_TEST_THREADS=N:
/// makes N ranks that are threads, without MPI.
int with_world(int& argc, char**& argv, const std::function<int()>& tests);

/// That for all tests of this program; the arguments are Catch's.
int run_tests(int argc, char** argv);

/// Numbers of servers that leave a worker, few enough for a test.
inline std::vector<int> server_counts() {
  std::vector<int> counts;
  for (int servers = 1; servers <= 2 && servers < world().size(); ++servers) counts.push_back(servers);
  return counts;
}

/// Several ranks on one GPU, which NCCL takes where each calls its host by another name and sockets of this machine are
/// all the network there is. Before NCCL is first used.
inline void pretend_hosts() {
  const std::string name = "rank" + std::to_string(world().rank());
  ::setenv("NCCL_HOSTID", name.c_str(), 1);
  for (const auto& [variable, value] :
       {std::pair("NCCL_NET", "Socket"), std::pair("NCCL_SOCKET_IFNAME", "lo"), std::pair("NCCL_ALGO", "Ring"),
        std::pair("NCCL_PROTO", "Simple"), std::pair("NCCL_MAX_CTAS", "2"), std::pair("NCCL_NVLS_ENABLE", "0"),
        std::pair("NCCL_RAS_ENABLE", "0")})
    ::setenv(variable, value, 0);
}

}  // namespace ronda::test
