#pragma once
// Debian 12 packages Catch2 2, Debian 13 Catch2 3.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
