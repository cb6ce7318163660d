#include "tool.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <iostream>

#include <ronda/runtime/core/error.hpp>
#include <ronda/runtime/files/atomic_file.hpp>

namespace ronda::apps {
namespace {

/// A text that quotes what was given, which may be anything, for a terminal.
std::string printable(std::string text) {
  constexpr std::size_t enough = 200;
  if (text.size() > enough) text = text.substr(0, enough) + "...";
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

/// What would be read as a number that was not meant: -1 is no count, and nan no rate.
void refuse_odd_numbers(CLI::App& app) {
  const CLI::Validator count([](std::string& text) { return text.starts_with('-') ? text + " is negative" : ""; }, "");
  const CLI::Validator number(
      [](std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        return end == text.c_str() || std::isfinite(value) ? "" : text + " is no finite number";
      },
      "");
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (type.starts_with("UINT")) option->transform(count);  // before what else looks at it
    if (type.starts_with("FLOAT")) option->transform(number);
  }
}

int fail(const std::string& text, ExitStatus status) {
  std::cerr << "ronda: error: " + text + "\n" << std::flush;
  return static_cast<int>(status);
}

}  // namespace

bool parse(CLI::App& app, int argc, char** argv) {
  refuse_odd_numbers(app);
  try {
    app.parse(argc, argv);
    return true;
  } catch (const CLI::Success& success) {
    app.exit(success);
    return false;
  } catch (const CLI::ConfigError& error) {
    throw InputError("the --config file: " + printable(error.what()) + "; its names are those of the options, see " +
                     app.get_name() + " --help");
  } catch (const CLI::ParseError& error) {
    throw InputError(printable(error.what()) + "; see " + app.get_name() + " --help");
  }
}

void add_world_options(CLI::App& app, WorldOptions& world, std::string& progress) {
  app.add_option("--progress", progress, "auto, inline, thread")->capture_default_str();
  app.add_option("--communication-timeout", world.communication_timeout,
                 "seconds a rank is waited for before the job ends; 0: for ever")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--trace", world.trace, "folder for the ranks' records, which ronda_trace reads");
}

void require_creatable(const World& world, const std::string& path) {
  agree(world.communicator(), [&] {
    if (world.rank() == 0 && !path.empty()) check_creatable(path);
  });
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

int run_alone(const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    return fail(error.what(), error.status());
  } catch (const std::exception& error) {
    return fail(error.what(), ExitStatus::failed);
  }
}

}  // namespace ronda::apps
