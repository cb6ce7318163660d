#include <array>
#include <cmath>
#include <vector>

#include <ronda/core/random.hpp>

#include "support/catch.hpp"

using namespace ronda;

// Known answers of Random123 1.14, tests/kat_vectors.
TEST_CASE("Philox gives its authors' numbers") {
  using Words = std::array<std::uint32_t, 4>;
  REQUIRE(philox4x32({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  REQUIRE(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
          Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  REQUIRE(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
          Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("uniform numbers fill [0, 1) evenly") {
  const RngKey key(1, Purpose::test, "uniform");
  constexpr int count = 1 << 17;
  std::array<int, 16> buckets{};
  double sum = 0, squares = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const double value = key.uniform(i);
    REQUIRE((value >= 0 && value < 1));
    ++buckets[static_cast<std::size_t>(value * 16)];
    sum += value;
    squares += value * value;
  }
  // Five standard deviations each.
  REQUIRE(std::abs(sum / count - 0.5) < 5 * std::sqrt(1.0 / 12 / count));
  REQUIRE(std::abs(squares / count - 1.0 / 3) < 5 * std::sqrt(4.0 / 45 / count));
  for (const int hits : buckets) REQUIRE(std::abs(hits - count / 16) < 5 * std::sqrt(count / 16.0));
}

TEST_CASE("normal numbers have the moments of a normal distribution") {
  const RngKey key(1, Purpose::test, "normal");
  constexpr int count = 1 << 17;
  std::array<double, 5> moments{};
  for (std::uint64_t i = 0; i < count; ++i)
    for (int power = 1; power <= 4; ++power)
      moments[static_cast<std::size_t>(power)] += std::pow(key.normal(i), power) / count;
  const double unit = 1 / std::sqrt(count);
  REQUIRE(std::abs(moments[1]) < 5 * unit);
  REQUIRE(std::abs(moments[2] - 1) < 5 * std::sqrt(2) * unit);
  REQUIRE(std::abs(moments[3]) < 5 * std::sqrt(15) * unit);
  REQUIRE(std::abs(moments[4] - 3) < 5 * std::sqrt(96) * unit);
}

TEST_CASE("numbers below a bound are below it and hit everything") {
  const RngKey key(1, Purpose::test);
  std::array<int, 7> hits{};
  for (std::uint64_t i = 0; i < 70000; ++i) ++hits.at(key.below(7, i));
  for (const int each : hits) REQUIRE(std::abs(each - 10000) < 500);
  REQUIRE(key.below(1, 0) == 0);
  std::array<std::uint64_t, 16> bounds{}, counters{}, numbers{};
  for (std::size_t i = 0; i < 16; ++i) {
    bounds[i] = std::uint64_t{1} << (3 * i);
    counters[i] = 1000 * i;
  }
  key.below(bounds, counters, numbers);
  for (std::size_t i = 0; i < 16; ++i) REQUIRE(numbers[i] == key.below(bounds[i], counters[i]));
}

TEST_CASE("equal keys give equal numbers, others do not") {
  const RngKey key(5, Purpose::sample_order, 3);
  REQUIRE(key.bits(9) == RngKey(5, Purpose::sample_order, 3).bits(9));
  for (const RngKey& other : {RngKey(6, Purpose::sample_order, 3), RngKey(5, Purpose::layer, 3),
                              RngKey(5, Purpose::sample_order, 4), RngKey(5, Purpose::sample_order, "3")})
    REQUIRE(key.bits(9) != other.bits(9));
  REQUIRE(key.bits(9) != key.bits(10));
  REQUIRE(key.derived("a").bits(9) == RngKey(5, Purpose::sample_order, 3).derived("a").bits(9));
  for (const RngKey& other :
       {key, key.derived("b"), key.derived("a").derived("a"), RngKey(5, Purpose::sample_order, 4).derived("a"),
        RngKey(6, Purpose::sample_order, 3).derived("a")})
    REQUIRE(key.derived("a").bits(9) != other.bits(9));
}

TEST_CASE("sixteen positions at once have the same bits") {
  const RngKey key(5, Purpose::test, 3);
  std::array<std::uint64_t, 16> counters{};
  std::array<std::uint32_t, 64> words{};
  for (std::size_t i = 0; i < 16; ++i) counters[i] = i % 3 == 0 ? i : (std::uint64_t{i} << 33) + 7 * i;
  key.bits(counters, words);
  for (std::size_t i = 0; i < 16; ++i) {
    const auto expected = key.bits(counters[i]);
    for (std::size_t w = 0; w < 4; ++w) REQUIRE(words[4 * i + w] == expected[w]);
  }
}
