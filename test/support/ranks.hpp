#pragma once
#include <functional>

#include <ronda/collectives/world.hpp>

namespace ronda::test {

/// The ranks that mpirun started this test program with.
[[nodiscard]] World& world();

/// Makes the world, runs the tests in it, and returns the worst rank's result on every rank.
int with_world(int& argc, char**& argv, const std::function<int()>& tests);

/// That for all tests of this program; the arguments are Catch's.
int run_tests(int argc, char** argv);

}  // namespace ronda::test
