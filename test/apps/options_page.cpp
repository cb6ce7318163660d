// Prints docs/options.md: the options that every training application has, as the command line itself knows them.
#include "../../apps/command_line.hpp"

#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include <ronda/runtime/trainer/option_visit.hpp>

using namespace ronda;

namespace {

constexpr const char* head = R"(# Options

Every training application has these options, on the command line (`--batch-size 64`), in the file that `--config` names
(`batch-size = 64`), and, where a field is named, in a program of your own:

```cpp
Trainer trainer(world, model, loss, {.epochs = 5, .batch_size = 64});
Trainer sharing(world, model, loss, {.strategy = Sharded{.one_copy = true}});
```

An application may have more of its own (`--help-all` shows all), and its own numbers of epochs, optimizer and learning rate. In a program of
your own the optimizer is `sgd` and the schedule `constant` unless you say otherwise. The library's errors name the field, an application's the
option. A `--config` file is [TOML](https://toml.io) without sections: lines `name = value`, where a value is a number, `true` or
`false`, a text in quotes, or an array of these. An error names the file and the line.

This page is written by `scripts/generated_pages.sh`, from the table in `runtime/trainer/option_visit.hpp`; a test holds it to that.
)";

std::string without_dashes(const CLI::Option& option) {
  const auto names = option.get_lnames();
  return names.empty() ? "" : names.front();
}

std::string names_of(const CLI::Option& option) {
  std::string text;
  for (const std::string& name : option.get_lnames()) text += (text.empty() ? "`--" : ", `--") + name + "`";
  return text;
}

/// A flag has no value, and a number's bounds are the text's to say.
std::string value_of(const CLI::Option& option) {
  std::string type = option.get_type_name();
  type = type.substr(0, type.find(':'));
  if (type == "UINT" || type == "INT") return type == "UINT" && option.get_type_name() != "UINT" ? " SIZE" : " N";
  if (type == "FLOAT") return " X";
  return type.empty() || option.get_expected_max() == 0 ? "" : " NAME";
}

/// The structs that have the fields, by the options' names.
std::map<std::string_view, std::string_view> owners() {
  std::map<std::string_view, std::string_view> all;
  TrainingOptions options;
  EveryStrategy every;
  visit(options, every, [&](const Option& option, const auto&...) { all[option.name] = option.owner; });
  return all;
}

/// `.batch_size`, or `LocalSgd{.fragments}`, as a program writes it.
std::string field_as_written(const std::string& name, const std::string& field) {
  static const auto owner_of = owners();
  if (field.empty()) return "";
  const auto owner = owner_of.find(name);
  if (owner == owner_of.end() || owner->second.empty()) return "`." + field + "`";
  return "`" + std::string(owner->second) + "{." + field + "}`";
}

void print_row(const CLI::Option& option, const apps::OptionNames& names) {
  std::string shown = names_of(option);
  if (!shown.empty() && option.get_expected_max() > 0) shown.insert(shown.size() - 1, value_of(option));
  const std::string name = without_dashes(option), field = field_as_written(name, names.field_of(name));
  std::string description = option.get_description();
  for (std::size_t at = 0; (at = description.find('|', at)) != std::string::npos; at += 2) description.insert(at, "\\");
  const std::string usual = option.get_default_str();
  std::cout << "| " << shown << " | " << field << " | " << (usual.empty() ? "" : "`" + usual + "`") << " | "
            << description << " |\n";
}

}  // namespace

int main() {
  apps::CommandLine options("program", "", {.epochs = 1, .learning_rate = 0.1});
  std::cout << head;
  std::vector<std::string> groups;
  for (const CLI::Option* option : options.app().get_options())
    if (std::ranges::find(groups, option->get_group()) == groups.end() && !option->get_group().empty())
      groups.push_back(option->get_group());
  for (const std::string& group : groups) {
    std::cout << "\n## " << group << "\n\n| option | field | default | meaning |\n|---|---|---|---|\n";
    for (const CLI::Option* option : options.app().get_options())
      if (option->get_group() == group) print_row(*option, options.names());
  }
}
