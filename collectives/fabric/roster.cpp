#include <ronda/collectives/fabric/roster.hpp>

#include <numeric>
#include <utility>

namespace ronda {

Ranks Roster::all() const {
  std::vector<int> ranks(neighbour.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return std::make_shared<const std::vector<int>>(std::move(ranks));
}

Ranks Roster::beside_self() const {
  const int here = neighbour[static_cast<std::size_t>(self)];
  std::vector<int> ranks;
  for (int rank = here; rank < size(); ++rank)
    if (neighbour[static_cast<std::size_t>(rank)] == here) ranks.push_back(rank);
  return std::make_shared<const std::vector<int>>(std::move(ranks));
}

}  // namespace ronda
