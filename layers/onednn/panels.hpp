#pragma once
#include <cstddef>
#include <cstdint>

#include <ronda/core/parallel.hpp>
#include <ronda/core/tensor.hpp>
#include <ronda/layers/onednn/nonzeros.hpp>

namespace ronda::onednn {

/// The three matrix products of a dense layer, y = x · wᵀ + b, for weights that lie in *panels* of 64 outputs: panel p
/// is the matrix (inputs, 64) of what leads to the outputs 64p to 64p + 63, in rows. All three are then
///
///     c (rows, 64)  =  a (rows, depth) · b (depth, 64)
///
///                        rows       depth     a               b                       c
///     forward            samples    inputs    x               panel of w              columns of y
///     weight gradients   inputs     samples   xᵀ              columns of dz           panel of dw
///     data gradients     inputs     outputs   panel of w      rows of dzᵀ, 64 samples rows of dxᵀ
///
/// with the 64 (16 at a time with AVX2) in vectors that stay in registers, six rows at a time, while a's elements go by
/// one after the other (the inner kernel of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication",
/// ACM TOMS 2008). Weights are read as they lie, in every direction, once and from start to end; what must be turned
/// round is as small as a batch. It pays where a matrix is far larger than the caches, and where many of x are 0: the
/// first two products then take only the others.
///
/// Sums go up in the order of depth, whatever the threads: equal bits from run to run.
class Panels {
 public:
  static constexpr std::int64_t width = 64;

  /// Whether this processor has AVX-512, or AVX2 with multiply-adds. No other has loops for it.
  [[nodiscard]] static bool suit_processor() noexcept;

  Panels(std::int64_t batch, std::int64_t inputs, std::int64_t outputs, bool relu, int threads);

  /// The weights' layout. Outputs are padded with zeros to whole panels.
  [[nodiscard]] TensorDesc weight() const;

  // x (batch, inputs) and y (batch, outputs) are plain rows; `scratch` has `scratch_bytes()`, aligned to
  // Buffer::alignment.

  /// @param bias  null for none
  void forward(const float* x, const float* w, const float* bias, float* y, std::byte* scratch) const;
  void backward_weights(const float* x, const float* dz, float* dw, std::byte* scratch) const;
  void backward_data(const float* dz, const float* w, float* dx, std::byte* scratch) const;

  [[nodiscard]] std::size_t scratch_bytes() const noexcept;

 private:
  template <class Body>
  void for_each_panel(float* memory, Body&& body) const;
  [[nodiscard]] std::int64_t columns_of(std::int64_t panel) const noexcept;
  [[nodiscard]] std::int64_t floats_before_marks() const noexcept;

  NonZeros inputs_not_zero_;
  std::int64_t batch_, inputs_, outputs_;
  std::int64_t panels_;  ///< of outputs
  std::int64_t groups_;  ///< of 64 samples
  bool relu_;
  int threads_;
};

}  // namespace ronda::onednn
