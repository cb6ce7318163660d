#pragma once
#include <istream>
#include <vector>

#include <CLI/CLI.hpp>

namespace ronda::apps {

/// Reads a `--config` file as CLI11 does, but for what that would take for something else: an array over several lines
/// is one value, a byte order mark is none, and text that it would cut or leave as it is written is refused.
class ConfigFile final : public CLI::ConfigTOML {
 public:
  /// Throws InputError that names the line: for `#` within quotes, `\` within double quotes, a quote that is not
  /// closed, three quotes, an array that does not end, and a section.
  [[nodiscard]] std::vector<CLI::ConfigItem> from_config(std::istream& file) const override;
};

}  // namespace ronda::apps
