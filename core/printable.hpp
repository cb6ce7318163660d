#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace ronda {

/// A text that somebody else gave, for a terminal: what is no character in UTF-8, or would move the cursor, colour the
/// screen or begin a new line, is shown as a question mark.
[[nodiscard]] std::string printable(std::string_view text);

/// How many bytes at the beginning of `text` are UTF-8; all of them where all of it is.
[[nodiscard]] std::size_t utf8_prefix(std::string_view text);
[[nodiscard]] inline bool is_utf8(std::string_view text) { return utf8_prefix(text) == text.size(); }

}  // namespace ronda
