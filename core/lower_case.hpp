#pragma once
#include <string>

namespace ronda {

/// A text whose letters A to Z are small; all others stay.
[[nodiscard]] inline std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace ronda
