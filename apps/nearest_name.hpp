#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace ronda::apps {

/// Which of `names` was probably meant by `word`: the one that fewest letters have to be put in, left out, changed, or
/// swapped with their neighbour to come to. Empty where that would be more than a third of them.
[[nodiscard]] std::string nearest_name(std::string_view word, const std::vector<std::string>& names);

}  // namespace ronda::apps
