#include <ronda/core/duration.hpp>

#include <charconv>
#include <system_error>

namespace ronda {

std::optional<double> parse_duration(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  const std::string_view unit(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr));
  const double seconds = number * (unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0);
  if (parsed.ec != std::errc() || !(seconds > 0) || seconds > 1e9) return std::nullopt;
  return seconds;
}

}  // namespace ronda
