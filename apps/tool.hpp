#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/world.hpp>
#include <ronda/runtime/checkpoint/outputs.hpp>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ronda::apps {

/// Reads the command line; false where it asked for help or the version, which is printed. Throws InputError.
bool parse(CLI::App& app, int argc, char** argv);

/// A text that quotes what was given, which may be anything, for a terminal: no control characters, not too long.
[[nodiscard]] std::string excerpt(std::string_view text);

/// `a, b, c`.
[[nodiscard]] std::string listed_names(const std::vector<std::string_view>& names);

/// `there is no option --epoch; did you mean --epochs?`
/// @param dashes  at the beginning of an option's name where `word` was written
[[nodiscard]] std::string no_option(const CLI::App& app, const std::string& word, const std::string& dashes);

/// Throws the InputError for a word that looks like an option and is none, with the name that was probably meant.
[[noreturn]] void refuse_unknown(const CLI::App& app, const std::string& word);

/// `--separator`, of a table: a character of ASCII, or `\t` for a tab.
CLI::Option* add_separator(CLI::App& app, char& separator, const std::string& help);

/// The options that every benchmark over ranks has. `progress` is read after parsing, by parse_progress.
void add_world_options(CLI::App& app, WorldOptions& world, std::string& progress);

/// Throws InputError if `output` is an input, another program's checkpoint (see require_apart), or a file that cannot
/// be created. Call before long work.
void require_output(const Output& output, const std::vector<std::filesystem::path>& inputs = {});
/// The same on all ranks, for an output that rank 0 writes. Collective.
void require_output(const World& world, const Output& output);

/// Of more than none.
double median(std::vector<double> values);

/// A tool that is one process, not one of several ranks: prints what `body` throws. Returns the exit status.
int run_alone(const std::function<int()>& body);

}  // namespace ronda::apps
