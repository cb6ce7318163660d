#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace ronda {

/// The names in a table as text: `a, b or c`.
/// @param name_of  the name of an entry
/// @param last     separator before the last name, if there are two or more
template <class Table, class NameOf>
[[nodiscard]] std::string listed(const Table& table, NameOf&& name_of, std::string_view last = ", ") {
  std::string list;
  std::size_t left = table.size();
  for (const auto& entry : table) {
    --left;
    if (!list.empty()) list += left == 0 ? last : ", ";
    list += name_of(entry);
  }
  return list;
}

}  // namespace ronda
