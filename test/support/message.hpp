#pragma once
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

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

}  // namespace ronda::test
