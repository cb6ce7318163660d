#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace ronda {

/// The name that `word` probably means: the most similar one, ignoring case; otherwise the first whose parts begin with
/// the word's letters (`lr`: `learning-rate`). Empty if no name is close.
[[nodiscard]] std::string nearest_name(std::string_view word, const std::vector<std::string>& names);

/// `; did you mean adam?`, or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

}  // namespace ronda
