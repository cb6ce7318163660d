#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace ronda {

/// An untrusted text, made safe for a terminal: each byte that is not UTF-8, and each character that moves the cursor,
/// changes colours or begins a new line, becomes a question mark.
[[nodiscard]] std::string printable(std::string_view text);

/// Number of bytes at the beginning of `text` that are UTF-8; its size if all of it is.
[[nodiscard]] std::size_t utf8_prefix(std::string_view text);
[[nodiscard]] inline bool is_utf8(std::string_view text) { return utf8_prefix(text) == text.size(); }

}  // namespace ronda
