#include <ronda/core/denormals.hpp>
#include <ronda/core/floats.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/core/parallel.hpp>

#include <atomic>
#include <bit>
#include <cstdint>

namespace ronda {

RONDA_MULTIVERSION void add_floats(const float* more, float* sums, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) sums[i] += more[i];
}

void add_floats(const float* more, float* sums, std::size_t count, int threads) {
  constexpr std::size_t floats_a_line = 16;
  parallel_for(
      threads, count,
      [&](Range part) {
        const DenormalScope flushing(true);
        add_floats(more + part.begin, sums + part.begin, part.size());
      },
      floats_a_line);
}

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
