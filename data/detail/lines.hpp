#pragma once
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>

namespace ronda {

/// The beginning of a text that a file has, for messages.
[[nodiscard]] inline std::string shown(std::string_view text) {
  constexpr std::size_t enough = 40;
  return printable(text.substr(0, enough)) + (text.size() > enough ? "..." : "");
}

/// Why `text` is not UTF-8: names the first wrong byte, from 1; empty if it is UTF-8.
[[nodiscard]] inline std::string why_not_utf8(std::string_view text) {
  const std::size_t sound = utf8_prefix(text);
  if (sound == text.size()) return {};
  return "byte " + std::to_string(sound + 1) + " of '" + shown(text) +
         "' is not UTF-8; convert the file: iconv -f WINDOWS-1252 -t UTF-8 FILE > OTHER, or from the encoding that it "
         "has";
}

/// Takes a text apart into lines, which end with LF or CRLF; the last may lack its end.
class LineReader {
 public:
  /// Both outlive this object.
  LineReader(std::string_view text, const std::filesystem::path& path) : rest_(text), path_(path) {}

  /// The next line, without its end; none at the text's end.
  std::optional<std::string_view> next() {
    if (rest_.empty()) return std::nullopt;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++line_;
    return line;
  }
  /// Throws InputError if `line`, the last from `next`, is not UTF-8.
  void require_utf8(std::string_view line) const {
    if (const std::string why = why_not_utf8(line); !why.empty()) throw error(why);
  }
  [[nodiscard]] std::size_t line() const noexcept { return line_; }  ///< of the last `next`, from 1

  /// To throw: names the file and the line.
  [[nodiscard]] InputError error(const Message& text) const {
    return InputError(path_.string() + ", line " + std::to_string(line_) + ": " + text);
  }

 private:
  std::string_view rest_;
  const std::filesystem::path& path_;
  std::size_t line_ = 0;
};

}  // namespace ronda
