#include <ronda/core/finite.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/core/parallel.hpp>

#include <atomic>
#include <bit>
#include <cstdint>

namespace ronda {
namespace {

/// By integers, since compilers may take floating point for finite; and without a branch, so that it becomes vectors.
RONDA_MULTIVERSION bool any_not_finite(const float* numbers, std::size_t count) {
  constexpr std::uint32_t exponent = 0x7f800000;
  std::uint32_t found = 0;
  for (std::size_t i = 0; i < count; ++i)
    found |= static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(numbers[i]) & exponent) == exponent);
  return found != 0;
}

}  // namespace

bool all_finite(int threads, std::span<const float> numbers) noexcept {
  std::atomic<bool> found = false;
  parallel_for(threads, numbers.size(), [&](Range range) {
    if (any_not_finite(numbers.data() + range.begin, range.size())) found.store(true, std::memory_order_relaxed);
  });
  return !found.load(std::memory_order_relaxed);
}

}  // namespace ronda
