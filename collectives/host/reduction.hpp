#pragma once
#include <cstddef>
#include <span>

#include <ronda/collectives/reduce_op.hpp>
#include <ronda/core/dtype.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

/// Numbers in memory that somebody else owns.
struct Elements {
  std::byte* data = nullptr;
  std::size_t count = 0;
  DType dtype = DType::float32;

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data, count * size_of(dtype)}; }
  [[nodiscard]] Elements part(Range range) const noexcept {
    return {data + range.begin * size_of(dtype), range.size(), dtype};
  }
};

/// The tensor's elements in memory, padding included. Throws InputError where they are more than memory can have.
[[nodiscard]] Elements elements_of(const Tensor& tensor);

/// The operation, and the number of ranks that it covers. A mean is a sum that is divided once, at the end.
struct Reduction {
  ReduceOp op = ReduceOp::sum;
  int ranks = 1;

  /// The same without the division of a mean, which the caller does.
  [[nodiscard]] Reduction unfinished() const noexcept { return {op == ReduceOp::mean ? ReduceOp::sum : op, ranks}; }
};

[[nodiscard]] constexpr bool is_integer(DType dtype) noexcept {
  return dtype == DType::int8 || dtype == DType::uint8 || dtype == DType::int32 || dtype == DType::int64;
}

/// Throws LogicError where `op` makes no sense for the type: bits of floating-point numbers.
void require_sense(ReduceOp op, DType dtype);

/// into[i] = into[i] op from[i], for all of `into`; a mean is summed.
void combine(ReduceOp op, const Elements& into, const std::byte* from);

/// Divides complete sums by `reduction.ranks` if the operation is a mean.
void divide_if_mean(const Reduction& reduction, const Elements& sums);

/// Makes every NaN the same one. Which of two a sum has depends on their order, and on what the compiler makes of it.
void unify_nans(const Elements& numbers);

/// Reduces elements `range` over all `copies`, always in their order, so that the bits do not depend on who does it,
/// and writes the result, finished, to every one of `targets`, which may be the copies themselves.
void reduce_copies(const Reduction& reduction, std::span<std::byte* const> copies, DType dtype, Range range,
                   std::span<std::byte* const> targets);

}  // namespace ronda
