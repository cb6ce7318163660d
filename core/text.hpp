#pragma once
#include <cstddef>
#include <cstdint>
#include <locale>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

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

/// The shortest decimal digits that read back to the same number: `0.1`, `1e-40`.
[[nodiscard]] std::string shortest(double number);
[[nodiscard]] std::string shortest(float number);

/// `1 step`, `2 steps`, `2 batches`, `2 epochs`.
[[nodiscard]] inline std::string counted(std::int64_t count, const std::string& noun) {
  const bool hisses = noun.ends_with("ch") && !noun.ends_with("epoch");
  return std::to_string(count) + " " + noun + (count == 1 ? "" : hisses ? "es" : "s");
}

/// 1536 bytes as `1.5 KiB`.
[[nodiscard]] std::string human_bytes(std::size_t bytes);

/// Seconds of `30s`, `10m`, `1.5h`; `nullopt` for other texts, for durations of 0 or less, and for more than thirty
/// years.
[[nodiscard]] std::optional<double> parse_duration(std::string_view text);

/// The names in a table as text: `a, b or c`.
/// @param name_of  the name of an entry
/// @param last     separator before the last name, if there are two or more
template <class Table, class NameOf>
[[nodiscard]] std::string listed(const Table& table, NameOf&& name_of, std::string_view last = ", ") {
  std::string list;
  std::size_t left = table.size();
  for (const auto& entry : table) {
    --left;
    if (!list.empty()) list += left == 0 ? last : ", ";
    list += name_of(entry);
  }
  return list;
}

/// A letter A to Z in lower case; other characters are not changed.
[[nodiscard]] constexpr char lower_case(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
/// The same for each letter of a text.
[[nodiscard]] inline std::string lower_case(std::string text) {
  for (char& c : text) c = lower_case(c);
  return text;
}

/// An untrusted text, made safe for a terminal: each byte that is not UTF-8, and each character that moves the cursor,
/// changes colours or begins a new line, becomes a question mark.
[[nodiscard]] std::string printable(std::string_view text);

/// Number of bytes at the beginning of `text` that are UTF-8; its size if all of it is.
[[nodiscard]] std::size_t utf8_prefix(std::string_view text);
[[nodiscard]] inline bool is_utf8(std::string_view text) { return utf8_prefix(text) == text.size(); }

}  // namespace ronda
