#pragma once
#include <cstdint>

/// The loops of WinnerGradients for kernels of 3×3 in float32: winners are marked, each by a bit, a vector of channels
/// at once, and the sums of one vector or two of input channels stay in registers while the bits are gone through.
namespace ronda::onednn::winner_loops {

/// What they know of a convolution. Steps and offsets in elements.
struct Geometry {
  std::int64_t row, column;       ///< steps of the input
  std::int64_t blocks;            ///< vectors of input channels
  const std::int64_t* block_at;   ///< where each starts in a sample of the input
  std::int64_t outputs;           ///< channels, in whole vectors
  const std::int64_t* output_at;  ///< where each vector of them starts in a sample of the pooled output
  std::int64_t lanes;             ///< of the pooled output: from a window to the next
  std::int64_t windows;
  const std::int32_t* window_at;  ///< where each starts in the input
  std::int64_t places;            ///< in a window
  const std::int32_t* place_at;   ///< from its start
};

/// Both loops, for one set of instructions.
struct Loops {
  std::int64_t lanes;  ///< channels of a vector, which lie together

  /// Adds what a sample gives to the weight gradients of a vector of output channels.
  /// @param dy, winners  from the first of these on
  /// @param sums         theirs: (lanes, inputs / 16, 3, 3, 16)
  void (*add_weights)(const Geometry& g, const float* x, const float* dy, const std::uint8_t* winners, float* sums);

  /// Adds up a sample's input gradient.
  /// @param weights  (outputs, inputs / 16, 3, 3, 16)
  /// @param scratch  of `scratch_bytes(g)`
  /// @param dx       zeros
  void (*add_data)(const Geometry& g, const float* dy, const std::uint8_t* winners, const float* weights, void* scratch,
                   float* dx);
};
[[nodiscard]] std::int64_t scratch_bytes(const Geometry& g);

/// This processor's: for AVX-512 or AVX2. Null where there are none.
[[nodiscard]] const Loops* loops_here();

}  // namespace ronda::onednn::winner_loops
