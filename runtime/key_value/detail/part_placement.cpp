#include <ronda/runtime/key_value/detail/part_placement.hpp>

#include <algorithm>
#include <numeric>

namespace ronda {

std::vector<std::vector<PlacedPart>> PartPlacement::place(const std::vector<std::size_t>& counts) {
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return counts[a] > counts[b]; });
  std::vector<std::vector<PlacedPart>> placed(counts.size());
  for (const std::size_t i : order) placed[i] = place_one(counts[i]);
  return placed;
}

std::vector<PlacedPart> PartPlacement::place_one(std::size_t count) {
  std::vector<PlacedPart> parts;
  for (std::size_t begin = 0; begin < count; begin += part_elements_) {
    const Range range{begin, std::min(begin + part_elements_, count)};
    const auto server = std::ranges::min_element(elements_);
    *server += range.size();
    parts.push_back({range, static_cast<int>(server - elements_.begin())});
  }
  return parts;
}

}  // namespace ronda
