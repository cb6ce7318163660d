#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/data/memory_dataset.hpp>

#include "support/catch.hpp"

using namespace ronda;

namespace {

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

/// Remembers which samples it was asked for. Sample i is i in all elements.
class Counted final : public Dataset {
 public:
  Counted(std::size_t size, const Shape& shape, float weight = 1)
      : size_(size), weight_(weight), fields_{Field{"input", shape}, Field{"target", Shape{}, DType::int32}} {}
  [[nodiscard]] std::size_t size() const override { return size_; }
  [[nodiscard]] std::span<const Field> fields() const override { return fields_; }
  void read(const SampleRequest& request, Batch& batch) const override {
    for (const std::uint64_t sample : request.samples) {
      asked.push_back(sample);
      std::ranges::fill(batch.input().as<float>(), static_cast<float>(sample));
      batch.weights().as<float>()[0] = weight_;
    }
  }
  mutable std::vector<std::uint64_t> asked;

 private:
  std::size_t size_;
  float weight_;
  std::vector<Field> fields_;
};

}  // namespace

TEST_CASE("a batch holds its fields with a leading batch axis") {
  const std::vector<Field> fields{{"input", Shape{2, 3}, DType::float32}, {"target", Shape{}, DType::int32}};
  Batch batch(fields, 5);
  REQUIRE(batch.input().desc() == TensorDesc{Shape{5, 2, 3}, DType::float32, {}});
  REQUIRE(batch.target().desc() == TensorDesc{Shape{5}, DType::int32, {}});
  REQUIRE(batch.weights().shape() == Shape{5});
  REQUIRE(batch.capacity() == 5);
  REQUIRE_THROWS_AS(batch.field("label"), InputError);

  batch.set_real(3);
  const auto weights = batch.weights().as<float>();
  REQUIRE(std::vector<float>(weights.begin(), weights.end()) == std::vector<float>{1, 1, 1, 0, 0});
  REQUIRE(batch.real() == 3);
  batch.set_real(5);
  REQUIRE(std::accumulate(weights.begin(), weights.end(), 0.0F) == 5);
  REQUIRE_THROWS_AS(batch.set_real(6), LogicError);
}

TEST_CASE("a memory dataset gives the samples that are asked for") {
  const MemoryDataset data(counting(12), Shape{3}, std::vector<std::int32_t>{10, 11, 12, 13});
  REQUIRE(data.size() == 4);
  Batch batch(data.fields(), 3);
  data.read({std::vector<std::uint64_t>{3, 0}}, batch);
  const auto inputs = batch.input().as<float>();
  const auto labels = batch.target().as<std::int32_t>();
  REQUIRE(std::vector<float>(inputs.begin(), inputs.end()) == std::vector<float>{9, 10, 11, 0, 1, 2, 0, 0, 0});
  REQUIRE(std::vector<std::int32_t>(labels.begin(), labels.end()) == std::vector<std::int32_t>{13, 10, 0});
}

TEST_CASE("a memory dataset takes float targets and fields of any name") {
  const MemoryDataset regression(counting(6), Shape{3}, counting(4), Shape{2});
  REQUIRE(regression.fields()[1].shape == Shape{2});
  REQUIRE(regression.fields()[1].dtype == DType::float32);

  std::vector<Column> columns;
  columns.push_back({"input", Shape{2}, counting(4)});
  columns.push_back({"target", Shape{}, std::vector<std::uint8_t>{1, 2}});
  columns.push_back({"age", Shape{1}, std::vector<double>{0.5, 1.5}});
  const MemoryDataset data(columns);
  Batch batch(data.fields(), 1);
  data.read({std::vector<std::uint64_t>{1}}, batch);
  REQUIRE(batch.field("age").as<double>()[0] == 1.5);
  REQUIRE(batch.target().as<std::uint8_t>()[0] == 2);
}

TEST_CASE("a memory dataset refuses sizes that do not fit") {
  const auto labels = [](std::size_t count) { return std::vector<std::int32_t>(count); };
  REQUIRE_THROWS_AS(MemoryDataset(counting(7), Shape{3}, labels(2)), InputError);
  REQUIRE_THROWS_AS(MemoryDataset(counting(6), Shape{3}, labels(3)), InputError);
  REQUIRE_THROWS_AS(MemoryDataset(counting(0), Shape{3}, labels(0)), InputError);
  REQUIRE_THROWS_AS(MemoryDataset(counting(6), Shape{3, 0}, labels(2)), InputError);
  REQUIRE_THROWS_AS(MemoryDataset({{"input", Shape{}, counting(2)}, {"input", Shape{}, counting(2)}}), InputError);
}

TEST_CASE("a fingerprint tells data apart") {
  const auto fingerprint = [](std::vector<float> inputs, const Shape& shape, std::int32_t label) {
    return MemoryDataset(std::move(inputs), shape, std::vector<std::int32_t>{label}).fingerprint();
  };
  REQUIRE(fingerprint({1, 2}, Shape{2}, 0) == fingerprint({1, 2}, Shape{2}, 0));
  REQUIRE(fingerprint({1, 2}, Shape{2}, 0) != fingerprint({1, 3}, Shape{2}, 0));
  REQUIRE(fingerprint({1, 2}, Shape{2}, 0) != fingerprint({1, 2}, Shape{2}, 1));
  REQUIRE(fingerprint({1, 2}, Shape{2}, 0) != fingerprint({1, 2}, Shape{2, 1}, 0));
}

TEST_CASE("a fingerprint reads a bounded number of samples, the first and the last among them, and no more bytes") {
  const Counted few(100, Shape{3}), many(100'000, Shape{3}), large(1000, Shape{1 << 20});
  REQUIRE(few.fingerprint() == few.fingerprint());
  CHECK(std::set(few.asked.begin(), few.asked.end()).size() == 100);  // each of them
  CHECK(few.asked.size() == 200);
  (void)many.fingerprint();
  CHECK(std::set(many.asked.begin(), many.asked.end()).size() == Dataset::fingerprint_samples);
  CHECK(many.asked.front() == 0);
  CHECK(many.asked.back() == 99'999);
  for (std::size_t i = 1; i < many.asked.size(); ++i) {
    const std::uint64_t apart = many.asked[i] - many.asked[i - 1];
    REQUIRE(apart >= 48);  // 99,999 / 2047 = 48.85
    REQUIRE(apart <= 49);
  }
  (void)large.fingerprint();
  CHECK(large.asked.size() == 15);  // of 4 MiB and a few bytes in 64 MiB
  CHECK(Counted(0, Shape{3}).fingerprint() != Counted(1, Shape{3}).fingerprint());
  CHECK(Counted(100'000, Shape{3}).fingerprint() != Counted(100'001, Shape{3}).fingerprint());
  CHECK(Counted(9, Shape{3}, 0.5F).fingerprint() != Counted(9, Shape{3}).fingerprint());  // weights count too
}

TEST_CASE(
    "a fingerprint of data that it reads whole differs with each byte, one of more data with each byte it reads") {
  const std::size_t samples = 3 * Dataset::fingerprint_samples;
  const auto fingerprint = [](std::size_t size, std::size_t changed) {
    std::vector<float> inputs = counting(size);
    inputs[changed] += 1;
    return MemoryDataset(std::move(inputs), Shape{1}, std::vector<std::int32_t>(size)).fingerprint();
  };
  std::set<std::uint64_t> seen;
  for (std::size_t i = 0; i < 100; ++i) seen.insert(fingerprint(100, i));
  CHECK(seen.size() == 100);
  CHECK(fingerprint(samples, 0) != fingerprint(samples, 1));
  CHECK(fingerprint(samples, samples - 1) != fingerprint(samples, 1));
  CHECK(fingerprint(samples, 1) == fingerprint(samples, 2));  // as the header says
}
