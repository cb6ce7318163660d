#include <numeric>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/tensor.hpp>

#include "support/catch.hpp"

using namespace ronda;

namespace {

/// Where element (n, h, w, c) lies.
std::int64_t offset_of(const Layout& layout, const Shape& shape, std::vector<std::int64_t> index) {
  std::int64_t offset = 0;
  for (int axis = 0; axis < shape.rank(); ++axis)
    offset += layout.offsets(shape, axis)[static_cast<std::size_t>(index[static_cast<std::size_t>(axis)])];
  return offset;
}

}  // namespace

TEST_CASE("a layout is what its tag says") {
  for (const char* tag : {"plain", "abdc", "adbc", "adbc16d", "abcd8b16a", "ba", "ab4b2a4b"})
    REQUIRE(Layout::parse(tag).tag() == tag);
  REQUIRE(Layout::parse("abcd") == Layout());  // row-major has one value
  REQUIRE(Layout::parse("adbc16d") != Layout::parse("adbc8d"));
  for (const char* tag : {"", "aa", "ac", "16a", "ab16", "ab16c", "abx", "Ab", "abcdefg", "ab0a", "ab2a2a2a2a2a"})
    REQUIRE_THROWS_AS(Layout::parse(tag), InputError);
}

TEST_CASE("plain order is row-major") {
  const Shape shape{2, 3, 4, 5};
  REQUIRE(offset_of(Layout(), shape, {1, 2, 3, 4}) == 1 * 60 + 2 * 20 + 3 * 5 + 4);
  REQUIRE(Layout().padded(shape) == shape);
}

TEST_CASE("a permuted order puts its last axis together") {
  const Shape shape{2, 3, 4, 5};  // N, H, W, C stored as N, C, H, W
  REQUIRE(offset_of(Layout::parse("adbc"), shape, {1, 2, 3, 4}) == 1 * 60 + 4 * 12 + 2 * 4 + 3);
}

TEST_CASE("a block keeps its elements together and pads the axis") {
  const Shape shape{2, 3, 4, 20};
  const Layout layout = Layout::parse("adbc16d");
  REQUIRE(layout.padded(shape) == Shape{2, 3, 4, 32});
  // n, channel block, h, w, channel in the block
  REQUIRE(offset_of(layout, shape, {1, 2, 3, 17}) == 1 * 384 + 1 * 192 + 2 * 64 + 3 * 16 + 1);
}

TEST_CASE("nested blocks take the digits of an index from inside out") {
  const Shape shape{8, 32};
  const Layout layout = Layout::parse("ab4b2a4b");  // b in pieces of 4 × 4, a in pieces of 2 between them
  REQUIRE(layout.padded(shape) == Shape{8, 32});
  // inner strides: 4b: 1, 2a: 4, 4b: 8; outer: b: 32, a: 64
  REQUIRE(offset_of(layout, shape, {5, 27}) ==
          (5 % 2) * 4 + (5 / 2) * 64 + (27 % 4) * 1 + (27 / 4 % 4) * 8 + (27 / 16) * 32);
}

TEST_CASE("an axis of one step goes and comes without moving a byte") {
  for (const char* tag : {"plain", "adbc", "adbc16d", "acdb", "abcd8b16a", "dabc"}) {
    const Layout layout = Layout::parse(tag);
    const Shape with{3, 20, 1, 5}, without{3, 20, 5};
    for (const auto& [axis, other] : {std::pair{0, 0}, {1, 1}, {3, 2}}) {
      INFO(tag << ", axis " << axis);
      CHECK(layout.without_step(2).offsets(without, other) == layout.offsets(with, axis));
    }
  }
  for (const char* tag : {"plain", "acb", "acb16c", "abc8b16a"})
    for (const int axis : {1, 2}) CHECK(Layout::parse(tag).with_step(axis).without_step(axis) == Layout::parse(tag));
  for (const char* tag : {"plain", "adbc", "adbc16d"})  // of images, whose height is outside of their width
    CHECK(Layout::parse(tag).without_step(1).with_step(1) == Layout::parse(tag));
  CHECK_THROWS_AS(Layout::parse("abcd4b").without_step(1), LogicError);
}

TEST_CASE("every element of a layout has a place of its own") {
  const Shape shape{3, 5, 4, 18};
  for (const char* tag : {"plain", "adbc", "dcba", "adbc16d", "abcd8d4a", "cabd2a8d2a"}) {
    const Layout layout = Layout::parse(tag);
    std::vector<int> hits(static_cast<std::size_t>(layout.padded(shape).count()));
    std::vector<std::vector<std::int64_t>> offsets;
    for (int axis = 0; axis < 4; ++axis) offsets.push_back(layout.offsets(shape, axis));
    for (const auto a : offsets[0])
      for (const auto b : offsets[1])
        for (const auto c : offsets[2])
          for (const auto d : offsets[3]) ++hits.at(static_cast<std::size_t>(a + b + c + d));
    REQUIRE(*std::max_element(hits.begin(), hits.end()) == 1);
    REQUIRE(std::accumulate(hits.begin(), hits.end(), 0) == shape.count());
  }
}

TEST_CASE("a reorder there and back changes nothing and leaves padding alone") {
  const Shape shape{3, 5, 4, 18};
  const TensorDesc plain{shape, DType::float32, {}};
  std::vector<float> values(static_cast<std::size_t>(plain.padded_count()));
  std::iota(values.begin(), values.end(), 1.0F);
  for (const char* tag : {"plain", "adbc", "adbc16d", "abcd8d4a", "cabd2a8d2a"}) {
    const TensorDesc desc{shape, DType::float32, Layout::parse(tag)};
    std::vector<float> stored(static_cast<std::size_t>(desc.padded_count()), -7.0F), back(values.size());
    reorder(Tensor(plain, values.data()), Tensor(desc, stored.data()));
    reorder(Tensor(desc, stored.data()), Tensor(plain, back.data()));
    REQUIRE(back == values);
    REQUIRE(std::count(stored.begin(), stored.end(), -7.0F) == desc.padded_count() - desc.count());
  }
  std::vector<std::int32_t> numbers(values.size());
  REQUIRE_THROWS_AS(reorder(Tensor(plain, values.data()), Tensor({shape, DType::int32, {}}, numbers.data())),
                    LogicError);
}

TEST_CASE("layouts that differ in axes of extent 1 alone are the same bytes") {
  const auto desc = [](Shape shape, const char* tag) { return TensorDesc{shape, DType::float32, Layout::parse(tag)}; };
  REQUIRE(same_bytes(desc({2, 1, 1, 5}, "plain"), desc({2, 1, 1, 5}, "adbc")));
  REQUIRE(same_bytes(desc({2, 3, 4, 1}, "plain"), desc({2, 3, 4, 1}, "adbc")));
  REQUIRE_FALSE(same_bytes(desc({2, 3, 4, 5}, "plain"), desc({2, 3, 4, 5}, "adbc")));
  REQUIRE_FALSE(same_bytes(desc({2, 3, 4, 5}, "plain"), desc({2, 3, 4, 5}, "abcd8d")));
}

TEST_CASE("one sample's layout lies within its batch's") {
  REQUIRE(Layout::parse("adbc").without_outermost() == Layout::parse("cab"));
  REQUIRE(Layout::parse("adbc16d").without_outermost() == Layout::parse("cab16c"));
  REQUIRE_FALSE(Layout::parse("badc").without_outermost());
  REQUIRE_FALSE(Layout::parse("abcd8a").without_outermost());
}
