#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <ronda/core/error.hpp>
#include <ronda/core/listed.hpp>

namespace ronda {

/// Names of the values of an enumeration in options and files: one table for parsing and printing. If a value has
/// several names, the first is printed.
template <class Enum, std::size_t count>
using EnumNames = std::array<std::pair<Enum, std::string_view>, count>;

/// @param what  for messages: `an allreduce`. Throws InputError that lists the names.
template <class Enum, std::size_t count>
[[nodiscard]] Enum parse_name(const EnumNames<Enum, count>& names, std::string_view name, const std::string& what) {
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

}  // namespace ronda
