#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>

namespace ronda {

/// Names of the values of an enumeration in options and files: one table for parsing and printing. If a value has
/// several names, the first is printed.
template <class Enum, std::size_t count>
using EnumNames = std::array<std::pair<Enum, std::string_view>, count>;

/// @param what  for messages: `an allreduce`. Throws InputError that lists the names.
template <class Enum, std::size_t count>
[[nodiscard]] Enum parse_name(const EnumNames<Enum, count>& names, std::string_view name, const Message& what) {
  for (const auto& [value, text] : names)
    if (text == name) return value;
  const auto text_of = [](const auto& entry) { return entry.second; };
  throw InputError("'" + std::string(name) + "' is not " + what + ": expected " + listed(names, text_of, " or "));
}

template <class Enum, std::size_t count>
[[nodiscard]] constexpr std::string_view find_name(const EnumNames<Enum, count>& names, Enum value) noexcept {
  for (const auto& [known, text] : names)
    if (known == value) return text;
  return "?";
}

/// The name that `word` probably means: the most similar one, ignoring case; otherwise the first whose parts begin with
/// the word's letters (`lr`: `learning-rate`). Empty if no name is close.
[[nodiscard]] std::string nearest_name(std::string_view word, const std::vector<std::string>& names);

/// `; did you mean adam?`, or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

}  // namespace ronda
