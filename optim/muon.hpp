#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <ronda/core/stream.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/rule.hpp>

namespace ronda {

/// Makes matrices nearly orthogonal: five quintic steps of Newton and Schulz, see Muon. Only `reserve` allocates. Each
/// element of a product is summed in a fixed order, so the bits do not depend on threads.
class NewtonSchulz {
 public:
  /// Allocates memory for matrices of up to this size.
  void reserve(std::size_t rows, std::size_t columns);
  /// Transforms a row-major matrix of at most the reserved size in place.
  /// @param norm  its Frobenius norm
  void operator()(float* matrix, std::size_t rows, std::size_t columns, double norm, Stream& stream);

 private:
  std::vector<float> x_, y_, a_, b_;  ///< padded with zeros to whole tiles
};

/// Momentum whose update of each matrix is made orthogonal (Jordan et al., "Muon: an optimizer for hidden layers in
/// neural networks", 2024), in the formulas of the authors' code:
///
///     m += (1 - momentum) · (g - m);  u = g + momentum · (m - g)
///     X = u / (‖u‖ + 1e-7);  five times: A = X Xᵀ, X = 3.4445 X + (-4.775 A + 2.0315 A²) X
///     p *= 1 - rate · decay;  p -= rate · √max(1, rows / columns) · X
///
/// A matrix with more rows than columns is transposed during the iteration. All computations are in float32; the
/// authors' code uses bfloat16. Parameters with two axes are matrices (outputs, inputs). Convolution weights with four
/// axes are matrices (outputs, all other axes), whose rows and columns also give the scale (the authors' code takes the
/// kernel's height and width). Other parameters, such as a Conv1d weight with three axes, are updated by AdamW, at
/// `adam_share` times the rate: the authors' 3e-4 for 0.02.
///
/// The states of a matrix are m and the X of the last update. Every rank computes all of X from the mean gradient over
/// all ranks, in a fixed order of summation, and so gets the same bits. Runs only on the processor, with float32
/// gradients. Cost per step and matrix: about 15 · rows · columns · min(rows, columns) multiplications and additions.
struct Muon {
  double momentum = 0.95;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-10;  ///< for AdamW
  static constexpr double adam_share = 0.015;

  [[nodiscard]] static std::span<const OptimizerRow> rows() noexcept;
};

}  // namespace ronda
