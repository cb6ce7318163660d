#pragma once
#include <initializer_list>
#include <string>
#include <string_view>

#include "support/catch.hpp"

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
  INFO(text);
  REQUIRE_FALSE(text.empty());
  for (const auto part : parts) {
    INFO(part);
    REQUIRE(text.find(part) != std::string::npos);
  }
}

}  // namespace ronda::test
