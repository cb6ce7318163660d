#pragma once
#include <cstddef>
#include <span>

namespace ronda {

/// Whether no element is an infinity or a NaN; computed by `threads` threads.
[[nodiscard]] bool all_finite(int threads, std::span<const float> numbers) noexcept;

}  // namespace ronda
