#pragma once
#include <istream>
#include <vector>

#include <CLI/CLI.hpp>

namespace ronda::apps {

/// Reads a `--config` file as CLI11 does, with three differences: an array over several lines is one value, a byte
/// order mark is skipped, and text that CLI11 would cut or leave unparsed is refused.
class ConfigFile final : public CLI::ConfigTOML {
 public:
  /// Throws InputError that names the line, for `#` within quotes, `\` within double quotes, an unclosed quote, three
  /// quotes, an array without an end, and a section.
  [[nodiscard]] std::vector<CLI::ConfigItem> from_config(std::istream& file) const override;
};

}  // namespace ronda::apps
