#pragma once
#include <string>
#include <string_view>

namespace ronda {

/// A text that somebody else gave, for a terminal: what is no character in UTF-8, or would move the cursor, colour the
/// screen or begin a new line, is shown as a question mark.
[[nodiscard]] std::string printable(std::string_view text);

/// Whether all of it is UTF-8.
[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace ronda
