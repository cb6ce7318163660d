// What one allreduce was asked to be, and what was measured of it.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include <ronda/collectives/collective.hpp>
#include <ronda/collectives/compression.hpp>

namespace ronda::apps {

/// How an allreduce is to be done.
struct Way {
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::automatic;
  Compression compression = Compression::none;
};

struct Result {
  std::size_t bytes = 0, count = 0;
  Way asked;
  std::string algorithm, compression;  ///< what it was
  double microseconds = 0, median_microseconds = 0, mpi_microseconds = 0;
  std::optional<double> model_microseconds = {};
  std::size_t wrong = 0;  ///< elements, on all ranks
};

}  // namespace ronda::apps
