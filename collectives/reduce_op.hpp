#pragma once
#include <cstdint>
#include <string_view>

namespace ronda {

/// The operation of a reduction over ranks, element by element.
///
/// - `minimum`, `maximum` of floating-point numbers follow IEEE 754-2019: NaN if any rank has a NaN, and −0 is less
///   than +0.
/// - 16-bit types are computed in float32 and rounded when stored: once if ranks share memory, once per hop with
///   messages.
/// - `mean` of float16 is summed in float32 on the host: rounded once, and finite if all numbers are. Means of other
///   floating-point types are sums divided at the end: infinite if the sum exceeds the type's largest number, about
///   3.4e38 for bfloat16 and float32.
/// - `sum`, `product` of integers wrap around. `mean` of integers is exact, rounded towards zero, without overflow; on
///   a device it is refused.
/// - `bitwise_and` is for integers only: the bits that are set on all ranks.
enum class ReduceOp : std::uint8_t { sum, mean, minimum, maximum, product, bitwise_and };
inline constexpr ReduceOp last_reduce_op = ReduceOp::bitwise_and;

/// Parses sum, mean, min, max, prod or and. Throws InputError, which lists these names.
[[nodiscard]] ReduceOp parse_reduce_op(std::string_view name);
[[nodiscard]] std::string_view name_of(ReduceOp op) noexcept;

}  // namespace ronda
