// 16-bit floating point: what every number becomes, there and back.
#include "support/catch.hpp"

#include <ronda/core/denormals.hpp>
#include <ronda/core/dtype.hpp>

#include <cmath>
#include <limits>

namespace ronda {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// From IEEE 754's definition. @param fraction_bits  10 or 7
double value_of(std::uint16_t bits, int fraction_bits) {
  const int exponent_bits = 15 - fraction_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int fraction = bits & ((1 << fraction_bits) - 1), exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction == 0 ? sign * infinity : std::nan("");
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

TEMPLATE_TEST_CASE("every 16-bit number becomes the float32 it is, and itself again", "", Float16, BFloat16) {
  const int fraction_bits = std::is_same_v<TestType, Float16> ? 10 : 7;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const TestType half{static_cast<std::uint16_t>(bits)};
    const double expected = value_of(half.bits, fraction_bits);
    const float found = to_float(half);
    if (std::isnan(expected)) {
      REQUIRE(std::isnan(found));
      REQUIRE(std::isnan(to_float(to_half<TestType>(found))));
    } else {
      REQUIRE(static_cast<double>(found) == expected);
      REQUIRE(std::signbit(found) == std::signbit(expected));
      REQUIRE(to_half<TestType>(found) == half);
    }
  }
}

TEMPLATE_TEST_CASE("between two 16-bit numbers the nearer is taken, and the even one of two as near", "", Float16,
                   BFloat16) {
  const std::uint16_t largest = std::is_same_v<TestType, Float16> ? 0x7bff : 0x7f7f;
  for (std::uint32_t bits = 0; bits < largest; ++bits) {
    const TestType low{static_cast<std::uint16_t>(bits)}, high{static_cast<std::uint16_t>(bits + 1)};
    const float middle = static_cast<float>((static_cast<double>(to_float(low)) + to_float(high)) / 2);  // exact
    REQUIRE(to_half<TestType>(middle) == (bits % 2 == 0 ? low : high));
    REQUIRE(to_half<TestType>(std::nextafter(middle, 0.0F)) == low);
    REQUIRE(to_half<TestType>(std::nextafter(middle, infinity)) == high);
    REQUIRE(to_half<TestType>(-middle).bits == (0x8000 | (bits % 2 == 0 ? low : high).bits));
  }
}

TEST_CASE("the smallest float16 numbers stay where float32's denormal numbers are zero") {
  for (const bool flush : {false, true}) {
    const DenormalScope scope(flush);
    for (std::uint32_t bits = 0; bits < 0x400; ++bits) {
      const Float16 half{static_cast<std::uint16_t>(bits)};
      REQUIRE(static_cast<double>(to_float(half)) == value_of(half.bits, 10));
      REQUIRE(to_half<Float16>(to_float(half)) == half);
    }
  }
}

TEST_CASE("beyond the largest number lies infinity") {
  CHECK(to_half<Float16>(65519.996F).bits == 0x7bff);
  CHECK(to_half<Float16>(65520.0F).bits == 0x7c00);
  CHECK(to_half<Float16>(-1e30F).bits == 0xfc00);
  CHECK(to_half<Float16>(infinity).bits == 0x7c00);
  CHECK(to_half<Float16>(1e-30F).bits == 0);
  CHECK(to_half<BFloat16>(std::numeric_limits<float>::max()).bits == 0x7f80);
  CHECK(to_half<BFloat16>(-infinity).bits == 0xff80);
}

}  // namespace
}  // namespace ronda
