#pragma once
#include <cstdint>

#include <ronda/layers/onednn/images.hpp>

/// How a convolution of 3×3 is cut into tiles of 4×4 outputs, and what its loops work on: see winograd.hpp.
namespace ronda::onednn {

/// A convolution of `from` to `to`, as its loops see it.
struct WinogradTiling {
  Images from, to;
  std::int64_t padding_down, padding_right;
  std::int64_t down, right;  ///< tiles in an image
  std::int64_t inputs, outputs;
  std::int64_t vectors;        ///< sixteens of output channels in a panel: what the products compute at once
  std::int64_t input_vectors;  ///< and of input channels in a chunk: what they sum up at once
  std::int64_t block;          ///< tiles that are worked on together
  bool in_one_block;           ///< all of them: then weights are transformed piece by piece

  WinogradTiling(const Images& source, const Images& destination, std::int64_t padding_above, std::int64_t padding_left,
                 int threads);
  [[nodiscard]] std::int64_t tiles() const { return from.samples * down * right; }
  [[nodiscard]] std::int64_t width() const { return vectors * vector; }
  [[nodiscard]] std::int64_t chunk() const { return input_vectors * vector; }
  [[nodiscard]] std::int64_t chunks() const { return inputs / chunk(); }
  [[nodiscard]] std::int64_t panels() const { return outputs / width(); }
  [[nodiscard]] std::int64_t pieces() const { return panels() * chunks(); }
  /// Whether an element of the kernel meets an input for some output, not only padding.
  [[nodiscard]] bool tap_meets_inputs(std::int64_t row, std::int64_t column) const {
    const auto meets = [](std::int64_t first, std::int64_t outputs_along, std::int64_t inputs_along) {
      return first + outputs_along > 0 && first < inputs_along;
    };
    return meets(row - padding_down, to.height, from.height) && meets(column - padding_right, to.width, from.width);
  }
  [[nodiscard]] bool every_tap_meets_inputs() const { return tap_meets_inputs(0, 0) && tap_meets_inputs(2, 2); }
  [[nodiscard]] std::int64_t weight_floats() const;
  [[nodiscard]] std::int64_t piece_floats() const;
  /// Of the weights' squares of 16 × 16 channels, which one a sixteen of a piece is.
  [[nodiscard]] std::int64_t square_at(std::int64_t piece, std::int64_t in, std::int64_t out, bool turned) const {
    const std::int64_t i = piece % chunks() * input_vectors + in, o = piece / chunks() * vectors + out;
    return turned ? i * (outputs / vector) + o : o * (inputs / vector) + i;
  }
};

namespace winograd {

constexpr std::int64_t tile_size = 4, kernel_size = 3, patch_size = tile_size + kernel_size - 1;
constexpr std::int64_t elements = patch_size * patch_size;

/// Floats of one pair of a tile and sixteen channels, transformed: 36 vectors.
constexpr std::int64_t spread = elements * vector;

/// Floats of a tile of all channels, transformed: a line more, so that tiles start in different sets of the caches.
constexpr std::int64_t step_of(std::int64_t channels) { return channels * elements + vector; }

}  // namespace winograd
}  // namespace ronda::onednn
