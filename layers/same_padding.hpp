#pragma once
#include <cstdint>
#include <limits>

namespace ronda {

/// As a padding of a convolution: as many zeros as leave the output as large as the input, PyTorch's padding = 'same'.
/// Where that is an odd number, one more of them is below or to the right. For stride 1.
inline constexpr std::int64_t same_padding = std::numeric_limits<std::int64_t>::min();

}  // namespace ronda
