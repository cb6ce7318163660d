#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ronda {

/// What splitting a model's operations over ranks has cost in steps so far.
struct SplitCosts {
  std::size_t parts = 0;                 ///< ranks that have one model together; 0: no operation is split
  std::vector<std::string> layers = {};  ///< `dense1=columns`
  std::uint64_t parameters = 0;          ///< elements, without padding, of the part that has most
  std::uint64_t bytes = 0;               ///< of what this rank's part has added up or gathered with the others
  double waiting_seconds = 0;            ///< that this rank spent in that
};

}  // namespace ronda
