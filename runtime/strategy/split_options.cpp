#include <ronda/core/counted.hpp>
#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/rank_groups.hpp>
#include <ronda/runtime/strategy/split_options.hpp>

#include <algorithm>
#include <iterator>

namespace ronda {

std::size_t SplitOptions::parts_on(std::size_t ranks) const {
  const std::size_t count = parts > 0 ? parts : ranks;
  if (ranks % count != 0)
    throw InputError(counted(static_cast<std::int64_t>(ranks), "rank") + " cannot be groups of " +
                     std::to_string(count) + " that split a model (.split.parts): give a multiple of " +
                     std::to_string(count) + " ranks");
  return count;
}

Shard SplitOptions::shard(std::size_t rank, std::size_t ranks) const {
  return RankGroups::shard_of(rank, ranks, parts_on(ranks));
}

std::vector<SplitChoice> SplitOptions::choices() const {
  std::vector<SplitChoice> all;
  std::ranges::transform(layers, std::back_inserter(all),
                         [](const std::string& text) { return parse_split_choice(text); });
  return all;
}

}  // namespace ronda
