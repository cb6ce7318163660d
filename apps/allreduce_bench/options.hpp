// What bench_allreduce is asked for: its command line, and the sizes, algorithms and compressions that come of it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/world.hpp>

#include "allreduce_bench/result.hpp"

namespace ronda::apps {

struct BenchOptions {
  std::uint64_t min_bytes = 8, max_bytes = std::uint64_t{64} << 20, factor = 4;
  int iterations = 0, warmup = 5, rounds = 0;  ///< iterations, rounds: 0: by size and time
  bool calibrate = false;
  bool warm = false;  ///< buffers are not rewritten between the calls of a measurement
  std::string dtype = "float32", op = "sum", algorithm = "auto", compare, json, progress = "auto", compression = "none",
              device = "cpu";
};

/// Reads the command line; false where it asked for help, which is printed. Throws InputError.
bool parse(int argc, char** argv, BenchOptions& options, WorldOptions& world);

[[nodiscard]] bool on_gpu(const BenchOptions& options);
[[nodiscard]] bool compares_with_mpi(const BenchOptions& options);

/// What is chosen, or could be: the model's expectation is shown beside it.
[[nodiscard]] bool models(const BenchOptions& options);

[[nodiscard]] DType element_type(const BenchOptions& options);

/// Bytes of the tensors to be reduced.
[[nodiscard]] std::vector<std::size_t> sizes(const BenchOptions& options);

/// Of tensors of so many bytes. @param shared  the ranks of a node share the memory that they lie in
[[nodiscard]] std::vector<Way> ways(const BenchOptions& options, const Topology& topology, std::size_t bytes,
                                    bool shared);

}  // namespace ronda::apps
