#pragma once
// Debian 12 packages Catch2 2, Debian 13 Catch2 3, where `Contains` asks for an element. A machine may have the headers
// of both.
#include <string>
#ifdef RONDA_CATCH2_3
#include <catch2/catch_all.hpp>
using Catch::Approx;
inline auto Contains(const std::string& text) { return Catch::Matchers::ContainsSubstring(text); }
#else
#include <catch2/catch.hpp>
using Catch::Matchers::Contains;
#endif
