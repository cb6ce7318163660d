#pragma once
#include <cstddef>
#include <span>

#include <ronda/runtime/core/dtype.hpp>
#include <ronda/runtime/core/parallel.hpp>
#include <ronda/runtime/core/tensor.hpp>

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

/// The tensor's elements in memory, padding included.
[[nodiscard]] Elements elements_of(const Tensor& tensor);
/// Throws LogicError for a type that is not summed.
void require_summable(DType dtype);

/// into[i] += from[i], for all of `into`.
void add(const Elements& into, const std::byte* from);

/// Sums elements `range` over all `copies`, always in their order, so that the bits do not depend on who does it, and
/// writes the sum to every one of `targets`, which may be the copies themselves.
void sum_copies(std::span<std::byte* const> copies, DType dtype, Range range, std::span<std::byte* const> targets);

}  // namespace ronda
