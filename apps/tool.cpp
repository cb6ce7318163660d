#include "tool.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <span>

#include <CLI/CLI.hpp>

#include <ronda/core/error.hpp>
#include <ronda/core/names.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/io/atomic_file.hpp>

#include "config_file.hpp"

namespace ronda::apps {

std::string excerpt(std::string_view text) {
  constexpr std::size_t enough = 200;
  return printable(text.substr(0, enough)) + (text.size() > enough ? "..." : "");
}

namespace {

/// Empty where all of `text` is a whole number from 0 on, or any, as strtoull reads them; otherwise what is wrong.
std::string why_no_count(const std::string& text, bool negative_too) {
  if (text.starts_with('-') && !negative_too) return text + " is negative";
  char* end = nullptr;
  errno = 0;
  if (negative_too)
    static_cast<void>(std::strtoll(text.c_str(), &end, 0));
  else
    static_cast<void>(std::strtoull(text.c_str(), &end, 0));
  if (text.empty() || *end != '\0') return "'" + text + "' is no whole number";
  return errno == ERANGE ? text + " is too large" : "";
}

/// The same of a finite number.
std::string why_no_number(const std::string& text) {
  char* end = nullptr;
  const double value = read_number(text.c_str(), &end);
  if (!text.empty() && *end == '\0') return std::isfinite(value) ? "" : text + " is no finite number";
  std::string pointed = text;
  std::ranges::replace(pointed, ',', '.');
  const bool meant = pointed != text && why_no_number(pointed).empty();
  return "'" + text + "' is no number" + (meant ? ": write " + pointed + ", with a point" : "");
}

/// 08 is eight, and 010 is ten: without zeros before them they are not read as octal numbers.
void make_decimal(std::string& text) {
  const std::size_t begin = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  const auto is_digit = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  while (text.size() > begin && text[begin] == '0' && is_digit(begin + 1)) text.erase(begin, 1);
}

/// What would be read as a number that was not meant: -1 is no count, nan no rate, and 0,1 neither.
void refuse_odd_numbers(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands({})) refuse_odd_numbers(*command);
  const auto check = [](auto&& why) { return CLI::Validator(std::forward<decltype(why)>(why), ""); };
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    const bool with_unit = type.find("SIZE") != std::string::npos;  // 4M: whoever knows the units reads the number
    if (type.starts_with("UINT"))
      option->transform(check([with_unit](std::string& text) {
        if (with_unit) return text.starts_with('-') ? text + " is negative" : "";
        make_decimal(text);
        return why_no_count(text, false);
      }));
    else if (type.starts_with("INT"))
      option->transform(check([](std::string& text) {
        make_decimal(text);
        return why_no_count(text, true);
      }));
    else if (type.starts_with("FLOAT"))
      option->transform(check([](std::string& text) { return why_no_number(text); }));
  }
}

std::vector<std::string> names_of_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty())  // of those that --help shows
      for (const std::string& name : option->get_lnames()) names.push_back(name);
  return names;
}

/// About the first of the words that nobody has taken.
std::string unexpected(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining(true);
  const auto option = std::ranges::find_if(words, [](const auto& word) { return word.size() > 1 && word[0] == '-'; });
  const auto chosen = app.get_subcommands();
  if (option != words.end()) return no_option(chosen.empty() ? app : *chosen.front(), *option, "--");
  return "'" + excerpt(words.empty() ? "" : words.front()) + "' belongs to no option";
}

/// `FILE:LINE: ` if the value that CLI11's `message` is about stands in the --config file. The command line precedes
/// it.
std::string place_of(const CLI::App& app, int argc, char** argv, const std::string& message) {
  const std::string option = message.substr(0, message.find(':'));
  for (const std::string word : std::span(argv, static_cast<std::size_t>(argc)))
    if (word.substr(0, word.find('=')) == option) return "";
  return place_in_config(app, option);
}

int fail(const std::string& text, ExitStatus status) {
  std::cerr << "ronda: error: " + text + "\n" << std::flush;
  return static_cast<int>(status);
}

}  // namespace

std::string no_option(const CLI::App& app, const std::string& word, const std::string& dashes) {
  const auto begin = std::min(word.find_first_not_of('-'), word.size());
  const std::string nearest = nearest_name(word.substr(begin, word.find('=') - begin), names_of_options(app));
  return "there is no option " + excerpt(word.substr(0, word.find('='))) +
         (nearest.empty() ? "" : "; did you mean " + dashes + nearest + "?");
}

bool parse(CLI::App& app, int argc, char** argv) {
  refuse_odd_numbers(app);
  try {
    app.parse(argc, argv);
    return true;
  } catch (const CLI::Success& success) {
    app.exit(success);
    return false;
  } catch (const CLI::ExtrasError&) {
    throw InputError(unexpected(app) + "; see " + app.get_name() + " --help");
  } catch (const CLI::ParseError& error) {
    throw InputError(place_of(app, argc, argv, error.what()) + excerpt(error.what()) + "; see " + app.get_name() +
                     " --help");
  }
}

void refuse_unknown(const CLI::App& app, const std::string& word) {
  throw InputError(no_option(app, word, "--") + "; see " + app.get_name() + " --help");
}

CLI::Option* add_separator(CLI::App& app, char& separator, const std::string& help) {
  const auto check = [](std::string& text) -> std::string {
    if (text == "\\t") text = "\t";
    if (text.size() == 1 && static_cast<unsigned char>(text[0]) < 0x80 && text.find_first_of("\"\r\n") != 0) return "";
    return "'" + excerpt(text) + "' separates no fields: give a character of ASCII other than a quote, or \\t";
  };
  return app.add_option("--separator", separator, help)->transform(CLI::Validator(check, ""));
}

void add_world_options(CLI::App& app, WorldOptions& world, std::string& progress) {
  app.add_option("--communication-progress,--progress", progress, "auto, inline, thread")->capture_default_str();
  app.add_option("--communication-timeout", world.communication_timeout,
                 "seconds a rank is waited for before the job ends; 0: for ever")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--trace", world.trace, "folder for the ranks' records, which ronda_trace reads");
}

void require_output(const World& world, const Output& output) {
  agree(world.communicator(), [&] {
    if (world.rank() == 0) require_output(output);
  });
}

void require_output(const Output& output, const std::vector<std::filesystem::path>& inputs) {
  require_apart({output}, inputs);
  if (!output.path.empty() && !output.folder) check_creatable(output.path);
}

std::string listed_names(const std::vector<std::string_view>& names) {
  return listed(names, [](std::string_view name) { return name; });
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

int run_alone(const std::function<int()>& body) {
  try {
    unbind_first_thread();
    const int status = body();
    if (!std::cout.flush()) throw ResourceError("standard output cannot be written");
    return status;
  } catch (const Error& error) {
    return fail(error.what(), error.status());
  } catch (const std::exception& error) {
    return fail(error.what(), ExitStatus::failed);
  }
}

}  // namespace ronda::apps
