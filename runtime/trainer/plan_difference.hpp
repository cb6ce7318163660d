#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ronda {

/// The first line in which two plans of a training (Strategy::plan_lines) differ, as (mine, theirs); `nothing` stands
/// for a missing line. The division of updates between ranks is not compared: bits do not depend on it.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> difference_of_plans(std::vector<std::string> mine,
                                                                                     std::vector<std::string> theirs);

}  // namespace ronda
