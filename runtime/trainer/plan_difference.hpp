#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ronda {

/// The first line in which two plans of a training (Strategy::plan_lines) differ, as (mine, theirs); `nothing` stands
/// for a line that one has not. Who updates which elements counts as no difference: bits do not depend on it.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> difference_of_plans(std::vector<std::string> mine,
                                                                                     std::vector<std::string> theirs);

}  // namespace ronda
