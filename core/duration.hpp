#pragma once
#include <optional>
#include <string_view>

namespace ronda {

/// Seconds of `30s`, `10m`, `1.5h`; nothing where it is no such text, or not more than 0, or beyond thirty years.
[[nodiscard]] std::optional<double> parse_duration(std::string_view text);

}  // namespace ronda
