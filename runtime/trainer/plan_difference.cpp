#include <ronda/runtime/strategy/step/strategy_plan.hpp>
#include <ronda/runtime/trainer/plan_difference.hpp>

#include <algorithm>

namespace ronda {

std::optional<std::pair<std::string, std::string>> difference_of_plans(std::vector<std::string> mine,
                                                                       std::vector<std::string> theirs) {
  for (auto* plan : {&mine, &theirs}) std::erase(*plan, update_by_parts_line);
  const std::size_t lines = std::max(mine.size(), theirs.size());
  for (auto* plan : {&mine, &theirs}) plan->resize(lines, "nothing");
  for (std::size_t i = 0; i < lines; ++i)
    if (mine[i] != theirs[i]) return std::pair(mine[i], theirs[i]);
  return {};
}

}  // namespace ronda
