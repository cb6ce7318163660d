#include "nearest_name.hpp"

#include <algorithm>
#include <limits>

namespace ronda::apps {
namespace {

/// The edit distance of Damerau and Levenshtein, no letter edited twice.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> least(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        least[i][j] = i + j;
        continue;
      }
      const std::size_t changed = a[i - 1] == b[j - 1] ? 0 : 1;
      least[i][j] = std::min({least[i - 1][j] + 1, least[i][j - 1] + 1, least[i - 1][j - 1] + changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        least[i][j] = std::min(least[i][j], least[i - 2][j - 2] + 1);
    }
  return least.back().back();
}

}  // namespace

std::string nearest_name(std::string_view word, const std::vector<std::string>& names) {
  constexpr std::size_t longest = 64;  // of a name; whatever else was given is none
  std::string nearest;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  if (word.size() > longest) return nearest;
  for (const std::string& name : names) {
    const std::size_t edits = distance(word, name);
    if (edits >= least || 3 * edits > std::max(word.size(), name.size())) continue;
    least = edits;
    nearest = name;
  }
  return nearest;
}

}  // namespace ronda::apps
