#pragma once
#include <cstddef>

namespace ronda {

/// sums[i] += more[i], by the widest vectors of the processor. `more` may be `sums`; otherwise they do not overlap.
void add_floats(const float* more, float* sums, std::size_t count) noexcept;
/// The same by several threads, which take denormal numbers for zero.
void add_floats(const float* more, float* sums, std::size_t count, int threads);

}  // namespace ronda
