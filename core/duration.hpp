#pragma once
#include <optional>
#include <string_view>

namespace ronda {

/// Seconds of `30s`, `10m`, `1.5h`; `nullopt` for other texts, for durations of 0 or less, and for more than thirty
/// years.
[[nodiscard]] std::optional<double> parse_duration(std::string_view text);

}  // namespace ronda
