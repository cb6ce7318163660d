#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>

#include <ronda/collectives/reduce_op.hpp>
#include <ronda/core/dtype.hpp>

namespace ronda::test {

/// Of which elements can be, for TEMPLATE_LIST_TEST_CASE.
using AllTypes = std::tuple<float, double, Float16, BFloat16, std::int8_t, std::uint8_t, std::int32_t, std::int64_t>;

/// Those for numbers of every type.
constexpr ReduceOp all_operations[] = {ReduceOp::sum, ReduceOp::mean, ReduceOp::minimum, ReduceOp::maximum,
                                       ReduceOp::product};

/// A small number as a T.
template <class T>
T small(int number) {
  if constexpr (std::is_class_v<T>)
    return to_half<T>(static_cast<float>(number));
  else
    return static_cast<T>(number);
}

/// Between any type of floating numbers and those that tests compute with.
template <class T>
T from_float(float number) {
  if constexpr (std::is_class_v<T>)
    return to_half<T>(number);
  else
    return static_cast<T>(number);
}
template <class T>
double as_double(T number) {
  if constexpr (std::is_class_v<T>)
    return to_float(number);
  else
    return static_cast<double>(number);
}

/// What rank `rank` gives at place i: numbers so small that every type holds their sums and products (of 8 ranks)
/// exactly, or wraps around as the integers do.
template <class T>
int operand(ReduceOp op, std::size_t i, int rank) {
  const auto mixed = static_cast<int>((i * 7 + static_cast<std::size_t>(rank) * 5) % 15);
  if (op == ReduceOp::product) return 1 + (static_cast<int>(i) + rank) % 2;
  return std::is_same_v<T, std::uint8_t> ? mixed : mixed - 7;
}

/// Operands, and so what they reduce to, repeat after so many places.
constexpr std::size_t operand_period = 30;

template <class T>
void fill_operands(ReduceOp op, std::span<T> elements, int rank) {
  std::array<T, operand_period> period;
  for (std::size_t i = 0; i < operand_period; ++i) period[i] = small<T>(operand<T>(op, i, rank));
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = period[i % operand_period];
}

/// What the ranks' operands at place i reduce to.
template <class T>
T reduced(ReduceOp op, std::size_t i, int ranks) {
  int result = operand<T>(op, i, 0);
  for (int rank = 1; rank < ranks; ++rank) {
    const int next = operand<T>(op, i, rank);
    switch (op) {
      case ReduceOp::sum:
      case ReduceOp::mean: result += next; break;
      case ReduceOp::product: result *= next; break;
      case ReduceOp::minimum: result = next < result ? next : result; break;
      case ReduceOp::maximum: result = next > result ? next : result; break;
      case ReduceOp::bitwise_and: result &= next; break;
    }
  }
  if (op != ReduceOp::mean) return small<T>(result);
  if constexpr (std::is_integral_v<T>)
    return small<T>(result / ranks);
  else if constexpr (std::is_same_v<T, double>)
    return static_cast<double>(result) / ranks;
  else if constexpr (std::is_same_v<T, float>)
    return static_cast<float>(result) / static_cast<float>(ranks);
  else
    return to_half<T>(static_cast<float>(result) / static_cast<float>(ranks));
}

/// How many elements are not what the ranks' operands reduce to; `first` is the place of the first.
template <class T>
std::size_t count_wrong(ReduceOp op, std::span<const T> elements, int ranks, std::size_t first = 0) {
  std::array<T, operand_period> period;
  for (std::size_t i = 0; i < operand_period; ++i) period[i] = reduced<T>(op, first + i, ranks);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < elements.size(); ++i) wrong += elements[i] == period[i % operand_period] ? 0 : 1;
  return wrong;
}

}  // namespace ronda::test
