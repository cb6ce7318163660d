#pragma once
#include <cstddef>
#include <span>

namespace ronda {

/// sums[i] += more[i], with the widest vectors of the processor. `more` may be `sums`; otherwise they must not overlap.
void add_floats(const float* more, float* sums, std::size_t count) noexcept;
/// The same on several threads, with denormal numbers flushed to zero.
void add_floats(const float* more, float* sums, std::size_t count, int threads);

/// Whether no element is an infinity or a NaN; computed by `threads` threads.
[[nodiscard]] bool all_finite(int threads, std::span<const float> numbers) noexcept;

}  // namespace ronda
