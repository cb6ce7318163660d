#pragma once
#include <cstddef>
#include <locale>
#include <span>
#include <sstream>
#include <string>

namespace ronda {

// Numbers as text, with a decimal point and without grouping, whatever std::locale::global or setlocale have chosen:
// a program with a decimal comma prints, stores and reads the same numbers as one without.

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

/// As std::snprintf: returns the length of the whole text, of which `buffer` holds what fits.
[[gnu::format(printf, 2, 3)]] int print_into(std::span<char> buffer, const char* format, ...);

/// At most 511 characters of it.
[[nodiscard, gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);

/// As std::strtod.
[[nodiscard]] double read_number(const char* text, char** end = nullptr) noexcept;

}  // namespace ronda
