#pragma once
#include <cstdint>
#include <limits>

namespace ronda {

/// Padding of a convolution that makes the output as large as the input: PyTorch's padding = 'same'. If the number of
/// zeros is odd, the extra zero is below or to the right. For stride 1 only.
inline constexpr std::int64_t same_padding = std::numeric_limits<std::int64_t>::min();

}  // namespace ronda
