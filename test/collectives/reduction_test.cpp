// What is computed of the ranks' numbers, without ranks: each operation on each type.
#include "support/catch.hpp"
#include "support/operands.hpp"

#include <ronda/collectives/host/reduction.hpp>
#include <ronda/core/error.hpp>

#include <cmath>
#include <limits>
#include <vector>

namespace ronda::reduction_test {
namespace {

using test::all_operations;

template <class T>
std::byte* bytes(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

template <class T>
Elements elements(std::vector<T>& values) {
  return {bytes(values), values.size(), dtype_of<T>};
}

template <class T>
std::vector<T> operands(ReduceOp op, std::size_t count, int rank) {
  std::vector<T> values(count);
  test::fill_operands<T>(op, values, rank);
  return values;
}

TEMPLATE_LIST_TEST_CASE("ranks combined one after the other, then finished", "", test::AllTypes) {
  std::vector<ReduceOp> operations(std::begin(all_operations), std::end(all_operations));
  if (std::is_integral_v<TestType>) operations.push_back(ReduceOp::bitwise_and);
  for (const ReduceOp op : operations)
    for (const int ranks : {1, 2, 3, 8})
      for (const std::size_t count : {0, 1, 3, 1000}) {
        auto result = operands<TestType>(op, count, 0);
        for (int rank = 1; rank < ranks; ++rank) {
          auto next = operands<TestType>(op, count, rank);
          combine(op, elements(result), bytes(next));
        }
        divide_if_mean({op, ranks}, elements(result));
        INFO(name_of(op) << " of " << count << " elements on " << ranks << " ranks");
        CHECK(test::count_wrong<TestType>(op, result, ranks) == 0);
      }
}

TEMPLATE_LIST_TEST_CASE("copies reduced in a range, into themselves or elsewhere", "", test::AllTypes) {
  constexpr std::size_t count = 5003;
  const Range range{17, 4998};
  for (const ReduceOp op : all_operations)
    for (const int ranks : {1, 2, 3, 8}) {
      std::vector<std::vector<TestType>> data;
      std::vector<std::byte*> copies;
      for (int rank = 0; rank < ranks; ++rank) data.push_back(operands<TestType>(op, count, rank));
      for (auto& copy : data) copies.push_back(bytes(copy));
      std::vector<TestType> elsewhere(count);
      std::byte* const target = bytes(elsewhere);
      reduce_copies({op, ranks}, copies, dtype_of<TestType>, range, {&target, 1});
      reduce_copies({op, ranks}, copies, dtype_of<TestType>, range, copies);
      INFO(name_of(op) << " on " << ranks << " ranks");
      const auto wrong = [&](const std::vector<TestType>& values) {
        return test::count_wrong<TestType>(op, std::span(values).subspan(range.begin, range.size()), ranks,
                                           range.begin);
      };
      CHECK(wrong(elsewhere) == 0);
      CHECK(elsewhere[range.begin - 1] == TestType{});
      CHECK(elsewhere[range.end] == TestType{});
      for (int rank = 0; rank < ranks; ++rank) {
        const auto& copy = data[static_cast<std::size_t>(rank)];
        CHECK(wrong(copy) == 0);
        CHECK(copy[range.end] == test::small<TestType>(test::operand<TestType>(op, range.end, rank)));
      }
    }
}

TEMPLATE_TEST_CASE("minimum and maximum keep NaN, and tell zeros apart", "", float, double, Float16, BFloat16) {
  const auto numbers = [](std::initializer_list<float> values) {
    std::vector<TestType> result;
    for (const float value : values) result.push_back(test::from_float<TestType>(value));
    return result;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto a = numbers({nan, 1, 0.0F, -0.0F, nan, -1}), b = numbers({1, nan, -0.0F, 0.0F, nan, 2});
  const auto check = [](ReduceOp op, const std::vector<TestType>& result) {
    for (const std::size_t i : {0, 1, 4}) CHECK(std::isnan(test::as_double(result[i])));
    for (const std::size_t i : {2, 3}) {
      CHECK(test::as_double(result[i]) == 0);
      CHECK(std::signbit(test::as_double(result[i])) == (op == ReduceOp::minimum));
    }
    CHECK(test::as_double(result[5]) == (op == ReduceOp::minimum ? -1 : 2));
  };
  for (const ReduceOp op : {ReduceOp::minimum, ReduceOp::maximum}) {
    auto result = a, other = b;
    combine(op, elements(result), bytes(other));
    check(op, result);
    for (const int ranks : {2, 3}) {  // each number of copies has a loop of its own
      std::vector<std::vector<TestType>> data{a, b, b};
      std::vector<std::byte*> copies;
      for (int rank = 0; rank < ranks; ++rank) copies.push_back(bytes(data[static_cast<std::size_t>(rank)]));
      std::vector<TestType> elsewhere(a.size());
      std::byte* const target = bytes(elsewhere);
      reduce_copies({op, ranks}, copies, dtype_of<TestType>, {0, a.size()}, {&target, 1});
      check(op, elsewhere);
      reduce_copies({op, ranks}, copies, dtype_of<TestType>, {0, a.size()}, copies);
      for (int rank = 0; rank < ranks; ++rank) check(op, data[static_cast<std::size_t>(rank)]);
    }
  }
}

TEST_CASE("16-bit numbers are rounded once where all copies are at hand, and once a step where they come one by one") {
  // 2048 + 1 is no float16: one by one each 1 is lost, together they count.
  std::vector<Float16> one{to_half<Float16>(2048)}, two{to_half<Float16>(1)}, three = two, sum(1);
  const std::vector<std::byte*> copies{bytes(one), bytes(two), bytes(three)};
  std::byte* const target = bytes(sum);
  reduce_copies({ReduceOp::sum, 3}, copies, DType::float16, {0, 1}, {&target, 1});
  CHECK(to_float(sum[0]) == 2050);
  combine(ReduceOp::sum, elements(one), bytes(two));
  combine(ReduceOp::sum, elements(one), bytes(three));
  CHECK(to_float(one[0]) == 2048);
}

TEST_CASE("integers wrap around, and there may be more ranks than an int8 can count") {
  std::vector<std::int8_t> a{100, -100, 16}, b{100, -100, 16};
  combine(ReduceOp::sum, elements(a), bytes(b));
  CHECK(a == std::vector<std::int8_t>{-56, 56, 32});
  std::vector<std::int64_t> large{std::numeric_limits<std::int64_t>::max()}, other{1};
  combine(ReduceOp::sum, elements(large), bytes(other));
  CHECK(large[0] == std::numeric_limits<std::int64_t>::min());
  std::vector<std::int8_t> sums{-128, 127};
  divide_if_mean({ReduceOp::mean, 256}, elements(sums));
  CHECK(sums == std::vector<std::int8_t>{0, 0});
}

TEST_CASE("operations have names") {
  for (const ReduceOp op : all_operations) CHECK(parse_reduce_op(name_of(op)) == op);
  CHECK(parse_reduce_op("and") == ReduceOp::bitwise_and);
  CHECK_THROWS_AS(parse_reduce_op("average"), InputError);
}

}  // namespace
}  // namespace ronda::reduction_test
