#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ronda {

/// Costs so far of splitting a model's operations over ranks.
struct SplitCosts {
  std::size_t parts = 0;                 ///< ranks that share one model; 0: no operation is split
  std::vector<std::string> layers = {};  ///< `dense1=columns`
  std::uint64_t parameters = 0;          ///< elements, without padding, of the largest part
  std::uint64_t bytes = 0;               ///< bytes that this rank summed or gathered with the other parts
  double waiting_seconds = 0;            ///< time that this rank spent in these exchanges
};

}  // namespace ronda
