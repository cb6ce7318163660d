#include <ronda/coordinator/detail/rank_set.hpp>

#include <algorithm>

namespace ronda {

void RankSet::add(Range range) {
  // Those that touch it, or lie next to it, become one with it.
  const auto begin = std::ranges::find_if(ranges_, [&](const Range& other) { return other.last + 1 >= range.first; });
  auto end = begin;
  for (; end != ranges_.end() && end->first <= range.last + 1; ++end) {
    range.first = std::min(range.first, end->first);
    range.last = std::max(range.last, end->last);
  }
  ranges_.insert(ranges_.erase(begin, end), range);
}

void RankSet::add(const RankSet& others) {
  for (const Range& range : others.ranges_) add(range);
}

RankSet RankSet::complement(int size) const {
  RankSet others;
  int next = 0;
  for (const Range& range : ranges_) {
    if (next < range.first) others.ranges_.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next < size) others.ranges_.push_back({next, size - 1});
  return others;
}

bool RankSet::contains(int rank) const noexcept {
  const auto range = std::ranges::lower_bound(ranges_, rank, {}, &Range::last);
  return range != ranges_.end() && range->first <= rank;
}

std::size_t RankSet::size() const noexcept {
  std::size_t ranks = 0;
  for (const Range& range : ranges_) ranks += static_cast<std::size_t>(range.last - range.first + 1);
  return ranks;
}

std::string RankSet::text(const std::function<std::string(int)>& name_of_rank) const {
  constexpr std::size_t most_named = 8;
  const std::size_t named = size() <= most_named + 1 ? size() : most_named;
  std::string text;
  std::size_t told = 0;
  for (const Range& range : ranges_)
    for (int rank = range.first; rank <= range.last && told < named; ++rank, ++told)
      text += (told == 0 ? "" : ", ") + name_of_rank(rank);
  if (named < size()) text += " and " + std::to_string(size() - named) + " more";
  return text;
}

}  // namespace ronda
