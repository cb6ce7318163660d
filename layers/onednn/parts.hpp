#pragma once
#include <cstdint>

namespace ronda::onednn {

/// How many of a size hold so many; the last may be filled in part.
[[nodiscard]] constexpr std::int64_t parts(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

}  // namespace ronda::onednn
