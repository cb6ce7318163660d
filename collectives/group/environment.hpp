#pragma once
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include <ronda/core/error.hpp>

namespace ronda {

/// The number, 0 or more, that an environment variable holds; none where it is not set, or holds something else.
[[nodiscard]] inline std::optional<std::int64_t> environment_number(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  return *end == '\0' && value >= 0 ? std::optional<std::int64_t>(value) : std::nullopt;
}

/// The same of a variable of ours, or `otherwise` where it is not set. Throws InputError where it holds something else.
template <class Number>
[[nodiscard]] Number from_environment(const char* name, Number otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  const auto value = environment_number(name);
  if (!value || !std::in_range<Number>(*value))
    throw InputError(std::string(name) + " is '" + text + "'; expected a number, 0 or more");
  return static_cast<Number>(*value);
}

}  // namespace ronda
