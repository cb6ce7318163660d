#pragma once
#include <cstdint>

/// The loops of WinnerGradients for kernels of 3×3 in float32, for AVX-512: winners are marked, each by a bit, sixteen
/// channels at once, and the sums of two vectors of input channels stay in registers while the bits are gone through.
/// They do nothing on processors of another kind; `has_avx512` (processor.hpp) says where they may run.
namespace ronda::onednn::winner_loops {

/// What they know of a convolution. Steps and offsets in elements; channels of the input and of the output in sixteens.
struct Geometry {
  std::int64_t row, column;       ///< steps of the input
  std::int64_t blocks;            ///< sixteens of input channels
  const std::int64_t* block_at;   ///< where each starts in a sample of the input
  std::int64_t outputs;           ///< channels
  const std::int64_t* output_at;  ///< where each sixteen of them starts in a sample of the pooled output
  std::int64_t lanes;             ///< of the pooled output: from a window to the next
  std::int64_t windows;
  const std::int32_t* window_at;  ///< where each starts in the input
  std::int64_t places;            ///< in a window
  const std::int32_t* place_at;   ///< from its start
};

/// Adds what a sample gives to the weight gradients of sixteen output channels.
/// @param dy, winners  from the first of these on
/// @param sums         theirs: (16, blocks, 3, 3, 16)
void add_weights(const Geometry& g, const float* x, const float* dy, const std::uint8_t* winners, float* sums);

/// Adds up a sample's input gradient.
/// @param weights  (outputs, blocks, 3, 3, 16)
/// @param scratch  of `scratch_bytes(g)`
/// @param dx       zeros
void add_data(const Geometry& g, const float* dy, const std::uint8_t* winners, const float* weights, void* scratch,
              float* dx);
[[nodiscard]] std::int64_t scratch_bytes(const Geometry& g);

}  // namespace ronda::onednn::winner_loops
