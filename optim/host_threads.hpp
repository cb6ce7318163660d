#pragma once
#include <algorithm>
#include <cstddef>

#include <ronda/core/stream.hpp>

namespace ronda {

/// Number of the stream's threads to use for a pass over `count` elements.
[[nodiscard]] inline int threads_for(std::size_t count, const Stream& stream) {
  constexpr std::size_t worth_a_thread = 1 << 14;  // elements; for fewer, starting threads takes longer than the pass
  const std::size_t useful = std::max<std::size_t>(count / worth_a_thread, 1);
  return static_cast<int>(std::min(useful, static_cast<std::size_t>(stream.threads())));
}

}  // namespace ronda
