#pragma once
#include <string>

namespace ronda {

/// A letter A to Z in lower case; other characters are not changed.
[[nodiscard]] constexpr char lower_case(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
/// The same for each letter of a text.
[[nodiscard]] inline std::string lower_case(std::string text) {
  for (char& c : text) c = lower_case(c);
  return text;
}

}  // namespace ronda
