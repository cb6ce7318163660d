#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <ronda/core/message.hpp>

namespace ronda::apps {

/// Names of the library's settings on a command line: `--batch-size 64` for `.batch_size = 64`. Usable as SettingNames.
class OptionNames {
 public:
  /// @param field  as Option::field_name
  /// @param name   without dashes
  void add(std::string field, std::string name) { names_.insert_or_assign(std::move(field), std::move(name)); }

  /// A flag that stands for one value of a field: `whole-gradients` for `sparse` with `false`.
  void add_flag(std::string field, std::string value, std::string name) {
    flags_.insert_or_assign({std::move(field), std::move(value)}, std::move(name));
  }

  /// The field behind a name of the command line; empty: the library has none.
  [[nodiscard]] std::string field_of(std::string_view name) const;
  /// `--batch-size 64`; empty: there is no such option.
  [[nodiscard]] std::string operator()(const Setting& setting) const;

 private:
  std::map<std::string, std::string, std::less<>> names_;             ///< by field
  std::map<std::pair<std::string, std::string>, std::string> flags_;  ///< by field and value
};

}  // namespace ronda::apps
