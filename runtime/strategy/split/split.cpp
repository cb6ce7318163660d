#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/parts/rank_groups.hpp>
#include <ronda/runtime/strategy/split/split.hpp>

#include <algorithm>
#include <iterator>

namespace ronda {

std::size_t Split::parts_on(std::size_t ranks) const {
  const std::size_t count = parts > 0 ? parts : ranks;
  if (ranks % count != 0)
    throw InputError(counted(static_cast<std::int64_t>(ranks), "rank") + " cannot be groups of " +
                     std::to_string(count) + " that split a model (" + setting("parts") + "): give a multiple of " +
                     std::to_string(count) + " ranks");
  return count;
}

Shard Split::shard(std::size_t rank, std::size_t ranks) const {
  return RankGroups::shard_of(rank, ranks, parts_on(ranks));
}

std::vector<SplitChoice> Split::choices() const {
  std::vector<SplitChoice> all;
  std::ranges::transform(layers, std::back_inserter(all),
                         [](const std::string& text) { return parse_split_choice(text); });
  return all;
}

void check(const Split& options, const Demands& demands) {
  static_cast<void>(options.choices());
  refuse_audits(
      demands, Split::name,
      "each rank updates its part of an operation alone, and what all ranks have alike is compared in the end");
  refuse_all_but_float32_on_processors(demands, Split::name);
  refuse_unequal_shares(demands, setting("strategy", "split"), "the ranks of a group compute the same samples");
}

}  // namespace ronda
