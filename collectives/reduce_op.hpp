#pragma once
#include <cstdint>
#include <string_view>

namespace ronda {

/// The operation of a reduction over ranks, element by element.
///
/// Floating point: `minimum` and `maximum` are IEEE 754-2019's: NaN where any rank has one, and −0 counts as less than
/// +0. 16-bit types are computed with as float32 and rounded when they are stored: once where ranks see one another's
/// memory, once a hop where messages carry them. A mean of float16 is summed as float32 on the host: it is rounded
/// once, and finite where the numbers are. Means of the other types are sums that are divided at the end: infinite
/// where the sum goes beyond the type's largest number, which is about 3.4e38 for bfloat16 and float32. Sums and
/// products of integers wrap around. A mean of integers is exact, rounded towards zero: its sum does not wrap; on a
/// device it is refused. `bitwise_and` is for integers alone: what all ranks have in common, a bit each.
enum class ReduceOp : std::uint8_t { sum, mean, minimum, maximum, product, bitwise_and };
inline constexpr ReduceOp last_reduce_op = ReduceOp::bitwise_and;

/// sum, mean, min, max, prod, and. Throws InputError that lists them.
[[nodiscard]] ReduceOp parse_reduce_op(std::string_view name);
[[nodiscard]] std::string_view name_of(ReduceOp op) noexcept;

}  // namespace ronda
