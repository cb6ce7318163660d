#pragma once
#include <cstddef>
#include <filesystem>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace ronda::apps {

/// `name = value` in a `--config` file.
struct ConfigEntry {
  std::string name;                 ///< as written
  std::vector<std::string> values;  ///< one, or an array's
  std::size_t line;
};

/// The entries of a TOML file, in order. Throws InputError that begins with `FILE:LINE: ` if the file is no TOML, with
/// the line to write if it looks like INI, and for a section or another value that no option has.
[[nodiscard]] std::vector<ConfigEntry> read_config(const std::filesystem::path& path);

/// `FILE:LINE: ` if the app's `--config` file sets `option`, with its dashes; empty if it does not.
[[nodiscard]] std::string place_in_config(const CLI::App& app, std::string_view option);

/// Gives CLI11 the entries of the app's `--config` file.
class ConfigFile final : public CLI::ConfigTOML {
 public:
  /// @param app  outlives this; has its --config option before it parses
  explicit ConfigFile(const CLI::App& app) : app_(app) {}

  /// Throws InputError, as read_config does, and for a name that is no option which a file may set.
  [[nodiscard]] std::vector<CLI::ConfigItem> from_config(std::istream& file) const override;

 private:
  const CLI::App& app_;
};

}  // namespace ronda::apps
