#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <ronda/core/error.hpp>

namespace ronda {

/// What the values of an enumeration are called in options and files: one table, read both ways. Where a value has
/// several names, the first is said.
template <class Enum, std::size_t count>
using EnumNames = std::array<std::pair<Enum, std::string_view>, count>;

/// @param what  for messages: `an allreduce`. Throws InputError that lists the names.
template <class Enum, std::size_t count>
[[nodiscard]] Enum parse_name(const EnumNames<Enum, count>& names, std::string_view name, const std::string& what) {
  std::string list;
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i].second == name) return names[i].first;
    list += (i == 0 ? "" : i + 1 == count ? " or " : ", ") + std::string(names[i].second);
  }
  throw InputError("'" + std::string(name) + "' is not " + what + ": expected " + list);
}

template <class Enum, std::size_t count>
[[nodiscard]] constexpr std::string_view find_name(const EnumNames<Enum, count>& names, Enum value) noexcept {
  for (const auto& [known, text] : names)
    if (known == value) return text;
  return "?";
}

}  // namespace ronda
