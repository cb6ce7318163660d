#include "config_file.hpp"

#include <sstream>
#include <string>
#include <string_view>

#include <ronda/core/error.hpp>
#include <ronda/core/printable.hpp>

namespace ronda::apps {
namespace {

/// A line without its comment, and how many more arrays it begins than it ends.
struct Line {
  std::string text;
  int opened = 0;
};

[[noreturn]] void refuse(std::size_t number, const std::string& what) {
  throw InputError("the --config file, line " + std::to_string(number) + ": " + what +
                   "; give this option on the command line");
}

Line read_line(std::string_view line, std::size_t number) {
  Line read;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == 0 && c == '#') break;
    if (quote != 0 && c == '#') refuse(number, "a # within quotes would begin a comment");
    if (quote == '"' && c == '\\') refuse(number, "\\ within double quotes is not understood; single quotes take it");
    if (line.substr(i).starts_with("\"\"\"") || line.substr(i).starts_with("'''"))
      refuse(number, "three quotes are not understood");
    if (quote == 0 && (c == '"' || c == '\''))
      quote = c;
    else if (c == quote)
      quote = 0;
    if (quote == 0 && c == '[') ++read.opened;
    if (quote == 0 && c == ']') --read.opened;
    read.text += c;
  }
  if (quote != 0) refuse(number, std::string("there is no second ") + quote);
  return read;
}

bool is_comment(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  return begin != std::string_view::npos && (line[begin] == ';' || line[begin] == '#');
}

bool is_section(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  return begin != std::string_view::npos && line[begin] == '[';
}

}  // namespace

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream& file) const {
  constexpr std::string_view mark = "\xef\xbb\xbf";
  std::stringstream lines;
  int opened = 0;
  std::size_t number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    if (number == 1 && text.starts_with(mark)) text.erase(0, mark.size());
    if (text.ends_with('\r')) text.pop_back();
    if (is_comment(text)) continue;
    if (opened == 0 && is_section(text))
      throw InputError("the --config file, line " + std::to_string(number) + ": " + printable(text) +
                       " begins a section, and options stand in none: leave the line out");
    const Line line = read_line(text, number);
    opened += line.opened;
    lines << line.text << (opened > 0 ? ' ' : '\n');
  }
  if (opened > 0) refuse(number, "an array has no ] at its end");
  return CLI::ConfigTOML::from_config(lines);
}

}  // namespace ronda::apps
