#pragma once
#include <cstddef>
#include <span>

namespace ronda {

/// Whether no element is an infinity or a NaN; looked at by so many threads.
[[nodiscard]] bool all_finite(int threads, std::span<const float> numbers) noexcept;

}  // namespace ronda
