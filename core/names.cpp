#include <ronda/core/names.hpp>
#include <ronda/core/text.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>

namespace ronda {
namespace {

/// The edit distance of Damerau and Levenshtein, with no letter edited twice.
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

/// `lr` of `learning-rate`.
std::string initials_of(std::string_view name) {
  std::string initials;
  for (std::size_t i = 0; i < name.size(); ++i)
    if (i == 0 || name[i - 1] == '-' || name[i - 1] == '_') initials += name[i];
  return initials;
}

}  // namespace

std::string nearest_name(std::string_view given, const std::vector<std::string>& names) {
  constexpr std::size_t longest = 64;  // a longer text is not a name
  if (given.size() > longest) return {};
  const std::string word = lower_case(std::string(given));
  std::string nearest;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const std::string& name : names) {
    const std::size_t edits = distance(word, name);
    if (edits >= least || 3 * edits > std::max(word.size(), name.size())) continue;
    least = edits;
    nearest = name;
  }
  if (!nearest.empty() || word.size() < 2) return nearest;
  const auto abbreviated = std::ranges::find(names, word, initials_of);
  return abbreviated == names.end() ? "" : *abbreviated;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const std::string nearest = nearest_name(word, names);
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

}  // namespace ronda
