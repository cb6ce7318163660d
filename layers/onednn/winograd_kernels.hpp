#pragma once
#include <cstdint>

#include <ronda/core/parallel.hpp>
#include <ronda/layers/onednn/winograd_tiling.hpp>

/// The loops of convolutions by tiles: the transforms, and the products between them.
namespace ronda::onednn::winograd {

/// What a max-pool of 2×2 windows side by side gives, and the place of each maximum, as Pooling has them. Windows do
/// not cross tiles.
struct PooledOutputs {
  Images images;
  float* y;
  std::uint8_t* winners;
};

/// c (rows, width) = a (rows, depth) · b (depth, width), or += it; steps in floats. The product is summed before it is
/// added to c: two short sums have a smaller rounding error than one long sum.
struct Product {
  const float* a;
  std::int64_t a_step;  ///< from a tile to the next
  const float* b;
  std::int64_t b_row;
  float* c;
  std::int64_t c_row;
  std::int64_t rows, depth;
  bool add;
};

/// All of them, for one set of instructions.
struct Loops {
  std::int64_t lanes;  ///< channels that lie together, at least: a vector

  /// v (tiles, inputs / 16, 36, 16) of some tiles of a block, whose first is `first`
  /// @param zero  for each tile the outputs all of whose inputs are 0, bit 4 · row + column; null: not wanted
  void (*transform_inputs)(const WinogradTiling& t, const float* x, std::int64_t first, Range tiles, float* v,
                           std::uint32_t* zero);
  /// d (tiles, outputs / 16, 36, 16) likewise
  void (*transform_gradients)(const WinogradTiling& t, const float* dy, std::int64_t first, Range tiles, float* d);
  /// y of a block's tiles and a panel's channels, from m (tiles, vectors, 36, 16)
  /// @param zero  as `transform_inputs` writes them: these outputs are the bias exactly
  /// @param bias  null for none
  void (*transform_outputs)(const WinogradTiling& t, const float* m, std::int64_t first, std::int64_t tiles,
                            std::int64_t panel, const std::uint32_t* zero, const float* bias, bool relu, float* y);
  /// The same, pooled before it is written.
  void (*transform_and_pool)(const WinogradTiling& t, const float* m, std::int64_t first, std::int64_t tiles,
                             std::int64_t panel, const std::uint32_t* zero, const float* bias, bool relu,
                             const PooledOutputs& pooled);
  /// A piece of the weights: (36, inputs of a chunk, outputs of a panel).
  /// @param w       (outputs / 16, inputs / 16, 3, 3, 16 inputs, 16 outputs)
  /// @param turned  w is another convolution's, whose gradients this one computes: inputs are outputs there, and the
  ///                kernel is turned by half a circle
  void (*transform_weights)(const WinogradTiling& t, const float* w, bool turned, std::int64_t piece, float* u);
  /// dw from a piece of its gradients; layouts as above.
  void (*transform_weight_gradients)(const WinogradTiling& t, const float* du, std::int64_t piece, float* dw);

  /// Rows are tiles, depth is channels, which come in sixteens.
  void (*multiply_tiles)(const Product& m, std::int64_t vectors);
  /// Rows are sixteen channels, depth is tiles.
  void (*multiply_channels)(const Product& m, std::int64_t vectors);
};

/// This processor's: for AVX-512 or AVX2. Null where there are none.
[[nodiscard]] const Loops* loops_here();

}  // namespace ronda::onednn::winograd
