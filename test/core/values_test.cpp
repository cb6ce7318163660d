#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/core/step_control.hpp>
#include <ronda/core/tensor.hpp>
#include <ronda/core/text.hpp>

#include "support/catch.hpp"

using namespace ronda;

TEST_CASE("a shape counts, shows and compares its extents") {
  const Shape shape{64, 28, 28, 1};
  REQUIRE(shape.rank() == 4);
  REQUIRE(shape.count() == 64 * 28 * 28);
  REQUIRE(shape.text() == "(64, 28, 28, 1)");
  REQUIRE(shape.without_batch() == Shape{28, 28, 1});
  REQUIRE(shape != Shape{64, 28, 28});
  REQUIRE(Shape().count() == 1);
  REQUIRE(Shape().text() == "()");
  REQUIRE(Shape{3, 0}.count() == 0);
  REQUIRE_THROWS_AS((Shape{1, -1}), LogicError);
  REQUIRE_THROWS_AS((Shape{1, 1, 1, 1, 1, 1, 1}), LogicError);
  REQUIRE_THROWS_AS(Shape().without_batch(), LogicError);
}

TEST_CASE("a hash tells contents and their order apart") {
  const auto hash = [](auto... values) {
    Hash result;
    (result.add(values), ...);
    return result.value();
  };
  using Text = std::string_view;
  REQUIRE(hash(Text("a"), Text("b")) == hash(Text("a"), Text("b")));
  REQUIRE(hash(Text("a"), Text("b")) != hash(Text("b"), Text("a")));
  REQUIRE(hash(Text("ab")) != hash(Text("a"), Text("b")));
  REQUIRE(hash(std::uint64_t{1}) != hash(std::uint64_t{2}));
  REQUIRE(Hash().add(Text("ronda")).text().size() == 16);
  // XXH3 with seed 0 of nothing and of "ronda" is the same on every machine: files and plans rest on it.
  REQUIRE(Hash().add(Text("")).text() == "2d06800538d394c2");
}

TEST_CASE("a buffer is zeroed, aligned, and moves") {
  for (const std::size_t bytes : {1, 100, 1 << 20, 5 << 20}) {
    Buffer buffer = Buffer::host(bytes);
    REQUIRE(buffer.bytes() == bytes);
    REQUIRE(reinterpret_cast<std::uintptr_t>(buffer.data()) % Buffer::alignment == 0);
    REQUIRE(std::all_of(buffer.data(), buffer.data() + bytes, [](std::byte byte) { return byte == std::byte{0}; }));
    const std::byte* const data = buffer.data();
    const Buffer moved = std::move(buffer);
    REQUIRE(moved.data() == data);
  }
  REQUIRE(Buffer::host(0).bytes() == 0);
  REQUIRE_THROWS_AS(Buffer::host(SIZE_MAX), ResourceError);
}

TEST_CASE("an arena's pieces are aligned and apart") {
  ArenaPlan plan;
  REQUIRE(plan.reserve(10) == 0);
  REQUIRE(plan.reserve(64) == 64);
  REQUIRE(plan.reserve(0) == 128);
  REQUIRE(plan.bytes() == 128);
}

TEST_CASE("a tensor is read as its own type alone") {
  std::vector<float> values(6);
  const Tensor tensor({Shape{2, 3}, DType::float32, {}}, values.data());
  REQUIRE(tensor.as<float>().size() == 6);
  REQUIRE_THROWS_AS(tensor.as<double>(), LogicError);
  REQUIRE(tensor.desc().text() == "float32 (2, 3) plain");
}

TEST_CASE("letters A to Z are made small, and no others") { CHECK(lower_case("A.Z\xc3\x84[") == "a.z\xc3\x84["); }

TEST_CASE("blocks of sums are added number by number") {
  std::array<double, StepControl::count> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(1 + i * i);
  auto all = std::bit_cast<StepControl>(numbers);
  add(all, all);
  const auto sums = std::bit_cast<decltype(numbers)>(all);
  for (std::size_t i = 0; i < numbers.size(); ++i) CHECK(sums[i] == 2 * numbers[i]);
}

TEST_CASE("a stream's hash is that of its bytes, however they come") {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 7);
  const auto bytes = std::as_bytes(std::span(text));
  StreamHash whole;
  whole.add(bytes);
  for (const std::size_t piece : {1, 7, 256, 4999}) {
    StreamHash pieces;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      pieces.add(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    CHECK(pieces.text() == whole.text());
  }
  CHECK(StreamHash().text() == "2d06800538d394c2");  // of nothing, as XXH3 has it
  text[4000] = 'x';
  StreamHash other;
  other.add(bytes);
  CHECK(other.text() != whole.text());
}
