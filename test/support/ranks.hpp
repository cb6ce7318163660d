#pragma once
#include <functional>

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

}  // namespace ronda::test
