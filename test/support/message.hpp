#pragma once
#include <concepts>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

#include <ronda/core/message.hpp>

namespace ronda::test {

/// What `body` throws, as text; empty where it throws no such error.
template <class Error, class Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

inline void require_mentions(const std::string& text, std::initializer_list<std::string_view> parts) {
  for (const auto part : parts)
    if (text.find(part) == std::string::npos)
      throw std::runtime_error("expected '" + std::string(part) + "' in '" + text + "'");
}
inline void require_mentions(const std::same_as<Message> auto& message, std::initializer_list<std::string_view> parts) {
  require_mentions(message.text(), parts);
}

}  // namespace ronda::test
