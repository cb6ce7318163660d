#include "option_names.hpp"

#include <algorithm>

namespace ronda::apps {

std::string OptionNames::field_of(std::string_view name) const {
  const auto found = std::ranges::find_if(names_, [&](const auto& entry) { return entry.second == name; });
  return found == names_.end() ? "" : found->first;
}

std::string OptionNames::operator()(const Setting& setting) const {
  if (const auto flag = flags_.find({setting.field, setting.value.value_or("")}); flag != flags_.end())
    return "--" + flag->second;
  const auto name = names_.find(setting.field);
  if (name == names_.end()) return "";
  return "--" + name->second + (setting.value ? " " + *setting.value : "");
}

}  // namespace ronda::apps
