#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include <ronda/layers/onednn/computation.hpp>
#include <ronda/layers/onednn/sums.hpp>
#include <ronda/layers/onednn/winograd_tiling.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda::onednn {

namespace winograd {
struct Loops;
}

/// Convolutions of 3×3 by tiles of 4×4 outputs, with a quarter of the multiplications (Lavin and Gray, "Fast algorithms
/// for convolutional neural networks", CVPR 2016, after Winograd). Of a tile's 6×6 inputs d, output gradients dy and
/// the weights w, for one pair of channels,
///
///     y  =  Aᵀ [ G w Gᵀ ⊙ Bᵀ d B ] A            dw  =  Gᵀ [ Bᵀ d B ⊙ A dy Aᵀ ] G
///
/// and dx is y of dy with the weights turned round. Transforms are linear, so the sums over channels, or over tiles for
/// dw, are taken between them: a matrix product for each of the 36 elements. A block of tiles is transformed,
/// multiplied and transformed back while it lies in the second-level cache; bias and ReLU are part of the last
/// transform.
///
/// Sums go up in the order of channels, or of tiles, whatever the threads: equal bits for any number of them. The
/// rounding error of an output is relative to its tile, not to the output: about 2e-8 of the largest sum of products of
/// the tile, 1e-6 to 5e-6 of the largest output over all of it. A small output beside large ones can therefore have
/// the wrong sign, and equal patches at different places of a tile differ by roundings. Two exceptions are exact: an
/// output whose inputs are all 0 is the bias, and the gradient of a weight that meets only padding is 0. A number that
/// is not finite spreads over its tile and those that overlap it, never to another sample's outputs, nor to outputs of
/// zeros.
class Winograd {
 public:
  /// Whether a convolution is of this kind, on whatever processor: 3×3 with stride 1 and padding 0 to 2, in float32, of
  /// channels in sixteens.
  [[nodiscard]] static bool suits(const ConvolutionProblem& spec);

  /// Empty where it cannot be done: it takes AVX-512 or AVX2, which ONEDNN_MAX_CPU_ISA may forbid, and channels that
  /// lie together in sixteens, or in eights with AVX2.
  static std::unique_ptr<Winograd> make(const Runtime& runtime, const ConvolutionProblem& spec,
                                        const TensorDesc& convolved, const TensorDesc& weight);

  /// The layouts that it likes: an output as the input, and weights that are read and written as they lie.
  [[nodiscard]] static TensorDesc output_of(const ConvolutionProblem& spec);
  [[nodiscard]] static TensorDesc weight_of(const ConvolutionProblem& spec);

  // `scratch` has `scratch_bytes()`, aligned to Buffer::alignment; all others are aligned to vectors.

  /// @param bias  null for none
  void forward(const float* x, const float* w, const float* bias, bool relu, float* y, std::byte* scratch);
  /// Whether the convolution's pooling can be part of the last transform: maxima of 2×2 windows side by side.
  [[nodiscard]] bool pools() const noexcept { return pooled_.has_value(); }
  /// @param y, winners  as Pooling has them
  void forward_and_pool(const float* x, const float* w, const float* bias, bool relu, float* y, std::uint8_t* winners,
                        std::byte* scratch);
  void backward_data(const float* dz, const float* w, float* dx, std::byte* scratch);
  void backward_weights(const float* x, const float* dz, float* dw, std::byte* scratch);

  [[nodiscard]] std::size_t scratch_bytes() const noexcept { return scratch_bytes_; }

  // One run on memory of its own; forward with the pooling, if that can be part of it.

  [[nodiscard]] std::function<void()> forward_rehearsal(bool relu);
  [[nodiscard]] std::function<void()> data_rehearsal();
  [[nodiscard]] std::function<void()> weights_rehearsal();

 private:
  Winograd(const Runtime& runtime, const winograd::Loops& loops, const ConvolutionProblem& spec, const Images& input,
           const Images& output, const TensorDesc& weight);
  struct Products;
  /// @param finish  (products): transforms them back
  template <class Finish>
  void convolve(const WinogradTiling& tiling, const float* x, const float* w, bool turned, float* scratch,
                Finish&& finish) const;
  [[nodiscard]] const float* weights(const float* parameter, std::byte* scratch);
  struct Rehearsal;
  [[nodiscard]] std::shared_ptr<Rehearsal> make_rehearsal() const;

  const winograd::Loops& loops_;
  int threads_;
  WinogradTiling forward_, backward_;
  SumParts blocks_;  ///< parts of the tiles, in weight gradients
  std::optional<Images> pooled_;
  std::unique_ptr<Kernel> to_parameter_, from_parameter_;  ///< empty where the parameter lies right
  std::size_t parameter_bytes_, weights_bytes_, scratch_bytes_;
};

}  // namespace ronda::onednn
