#pragma once
#include <vector>

#include "support/ranks.hpp"

namespace ronda::test {

/// Numbers of servers that leave a worker, few enough for a test.
inline std::vector<int> server_counts() {
  std::vector<int> counts;
  for (int servers = 1; servers <= 2 && servers < world().size(); ++servers) counts.push_back(servers);
  return counts;
}

}  // namespace ronda::test
