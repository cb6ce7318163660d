#pragma once
#include <cstddef>
#include <locale>
#include <span>
#include <sstream>
#include <string>

namespace ronda {

// Numbers as text, with a decimal point and without grouping, independent of std::locale::global and setlocale: a
// program with a decimal comma prints, stores and reads the same numbers as one without.

/// A string stream to write to.
class TextWriter final : public std::ostringstream {
 public:
  TextWriter() { imbue(std::locale::classic()); }
};

/// A string stream to read from.
class TextReader final : public std::istringstream {
 public:
  explicit TextReader(const std::string& text) : std::istringstream(text) { imbue(std::locale::classic()); }
};

/// Like std::snprintf: returns the length of the whole text; `buffer` holds as much of it as fits.
[[gnu::format(printf, 2, 3)]] int print_into(std::span<char> buffer, const char* format, ...);

/// The text, truncated to 511 characters.
[[nodiscard, gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);

/// Like std::strtod.
[[nodiscard]] double read_number(const char* text, char** end = nullptr) noexcept;

}  // namespace ronda
