#include "tool.hpp"

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

int fail(const std::string& text, ExitStatus status) {
  std::cerr << "ronda: error: " + text + "\n" << std::flush;
  return static_cast<int>(status);
}

}  // namespace

bool parse(CLI::App& app, int argc, char** argv) {
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

void write_text(const std::filesystem::path& path, const std::string& text) {
  if (path.empty()) return;
  AtomicFile file(path);
  file.write(text);
  file.commit();
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
