#include "config_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>

#define TOML_ENABLE_FORMATTERS 0  // halves the time to compile
#include <toml++/toml.h>

#include <ronda/core/error.hpp>

#include "tool.hpp"

namespace ronda::apps {
namespace {

constexpr std::string_view blank = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(blank), text.size());
  return text.substr(begin, text.find_last_not_of(blank) + 1 - begin);
}

std::string place(const std::string& path, std::size_t line) {
  return excerpt(path) + ":" + std::to_string(line) + ": ";
}

bool is_toml(std::string_view text) {
  try {
    static_cast<void>(toml::parse(text));
    return true;
  } catch (const toml::parse_error&) {
    return false;
  }
}

/// `value` as TOML writes it, which INI files have without quotes, or with a comma in a number.
std::optional<std::string> written_value(std::string_view value) {
  if (value.empty()) return std::nullopt;
  const std::string text(value);
  std::vector<std::string> candidates{text};
  if (text.find_first_not_of("+-.,0123456789eE") == std::string::npos) {
    candidates.push_back(text);
    std::ranges::replace(candidates.back(), ',', '.');
  }
  if (std::string_view("[{\"'").find(text.front()) == std::string_view::npos)
    candidates.insert(candidates.end(), {'"' + text + '"', "'" + text + "'"});
  const auto found = std::ranges::find_if(candidates, [](const std::string& each) { return is_toml("x = " + each); });
  return found == candidates.end() ? std::nullopt : std::optional(*found);
}

/// The TOML line to write in place of this INI line; empty if the line is not INI.
std::string remedy(std::string_view line) {
  if (line.starts_with(';')) return "begin a comment with #";
  line = trimmed(line.substr(0, line.find(" ;")));
  const std::size_t end = std::min(line.find_first_of("=:"), line.size());
  const std::string name(trimmed(line.substr(0, end)));
  if (name.find_first_of("\"'.[]{}, \t") != std::string::npos || !is_toml(name + " = 1")) return "";
  if (end == line.size()) return "write " + name + " = true";
  const auto value = written_value(trimmed(line.substr(end + 1)));
  return value ? "write " + name + " = " + *value : "";
}

/// Begin of line `number`, counted from 1.
std::size_t begin_of_line(std::string_view text, std::size_t number) {
  std::size_t begin = 0;
  while (--number > 0 && begin < text.size()) begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  return begin;
}

InputError no_toml(const std::string& path, std::string_view text, const toml::parse_error& error) {
  const std::size_t number = error.source().begin.line, begin = begin_of_line(text, number);
  const std::string_view line = trimmed(text.substr(begin, text.find('\n', begin) - begin));
  const bool wrong_alone = is_toml(text.substr(0, begin)) && !is_toml(line);  // the lines before are not the cause
  const std::string instead = wrong_alone ? remedy(line) : "";
  return InputError(place(path, number) + "'" + excerpt(line) +
                    "' is no TOML: " + (instead.empty() ? excerpt(error.description()) : excerpt(instead)));
}

std::string text_of(double number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.begin(), text.end(), number).ptr;
  const std::string shortest(text.begin(), end);
  return shortest.find_first_not_of("-0123456789") == std::string::npos ? shortest + ".0" : shortest;
}

/// Empty for a value that no option has.
std::optional<std::string> text_of(const toml::node& value) {
  if (const auto text = value.value_exact<std::string>())
    return text->find('\0') == std::string::npos ? text : std::nullopt;
  if (const auto number = value.value_exact<std::int64_t>()) return std::to_string(*number);
  if (const auto number = value.value_exact<double>()) return text_of(*number);
  if (const auto flag = value.value_exact<bool>()) return *flag ? "true" : "false";
  return std::nullopt;
}

ConfigEntry entry_of(const std::string& path, const toml::key& key, const toml::node& value) {
  ConfigEntry entry{std::string(key.str()), {}, key.source().begin.line};
  const auto wrong = [&](const std::string& what) { return InputError(place(path, entry.line) + what); };
  if (value.is_table() || value.is_array_of_tables())
    throw wrong("[" + excerpt(entry.name) +
                "] is a section, and options stand at the top of the file, in no section: leave this line out");
  const auto add = [&](const toml::node& each) {
    auto text = text_of(each);
    if (!text)
      throw wrong(excerpt(entry.name) +
                  ": an option's value is a number, true, false, a text without \\u0000, or an array of these");
    entry.values.push_back(std::move(*text));
  };
  if (const toml::array* array = value.as_array())
    for (const toml::node& each : *array) add(each);
  else
    add(value);
  if (entry.values.empty()) throw wrong(excerpt(entry.name) + ": an empty array sets nothing: leave the line out");
  return entry;
}

std::vector<ConfigEntry> entries_of(std::istream& file, const std::string& path) {
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<ConfigEntry> entries;
  try {
    for (const auto& [key, value] : toml::parse(text)) entries.push_back(entry_of(path, key, value));
  } catch (const toml::parse_error& error) {
    throw no_toml(path, text, error);
  }
  std::ranges::stable_sort(entries, {}, &ConfigEntry::line);
  return entries;
}

/// The file that `--config` names.
std::string path_of(const CLI::App& app) {
  const CLI::Option* config = app.get_config_ptr();
  return config == nullptr || config->count() == 0 ? "" : config->results().front();
}

std::string without_dashes(const std::string& name) {
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

/// The option that an entry sets. Throws InputError if there is none.
const CLI::Option* option_of(const CLI::App& app, const ConfigEntry& entry, const std::string& path) {
  const CLI::Option* option = app.get_option_no_throw("--" + without_dashes(entry.name));
  if (option == nullptr)
    throw InputError(place(path, entry.line) + no_option(app, entry.name, "") +
                     "; the names are those of the options, see " + app.get_name() + " --help");
  if (!option->get_configurable())
    throw InputError(place(path, entry.line) + excerpt(entry.name) + " is for the command line: leave the line out");
  return option;
}

}  // namespace

std::vector<ConfigEntry> read_config(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw InputError("cannot read the --config file " + excerpt(path.string()));
  std::vector<ConfigEntry> entries = entries_of(file, path.string());
  for (ConfigEntry& entry : entries) entry.name = without_dashes(entry.name);
  return entries;
}

std::string place_in_config(const CLI::App& app, std::string_view option) {
  const std::string path = path_of(app);
  if (path.empty() || !option.starts_with("--")) return "";
  for (const ConfigEntry& entry : read_config(path))
    if (entry.name == option.substr(2)) return place(path, entry.line);
  return "";
}

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream& file) const {
  const std::string path = path_of(app_);
  std::vector<CLI::ConfigItem> read;
  std::vector<const CLI::Option*> options;
  for (const ConfigEntry& entry : entries_of(file, path)) {
    const CLI::Option* option = option_of(app_, entry, path);
    if (std::ranges::find(options, option) != options.end())
      throw InputError(place(path, entry.line) + excerpt(entry.name) + " is set twice: leave the line out");
    options.push_back(option);
    read.push_back({{}, without_dashes(entry.name), entry.values});
  }
  return read;
}

}  // namespace ronda::apps
