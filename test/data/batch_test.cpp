#include <numeric>
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
