#pragma once
#include <span>

#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/rule.hpp>

namespace ronda {

/// Momentum whose update of each matrix is made orthogonal (Jordan et al., "Muon: an optimizer for hidden layers in
/// neural networks", 2024), in the formulas of the authors' code:
///
///     m += (1 - momentum) · (g - m);  u = g + momentum · (m - g)
///     X = u / (‖u‖ + 1e-7);  five times: A = X Xᵀ, X = 3.4445 X + (-4.775 A + 2.0315 A²) X
///     p *= 1 - rate · decay;  p -= rate · √max(1, rows / columns) · X
///
/// A matrix of more rows than columns is transposed meanwhile. In float32, where the authors' code has bfloat16.
/// Parameters of two axes are matrices (outputs, inputs); those of four, of convolutions, are matrices (outputs, all
/// else), by whose rows and columns they are scaled too (the authors' code takes the kernel's height and width).
/// Others, a Conv1d's weight of three axes among them, are updated by AdamW, at `adam_share` of the rate, which is the
/// authors' 3e-4 beside 0.02.
///
/// The states of a matrix are m, and the X of the last update. Every rank works out all of X, of the mean gradient over
/// all ranks, in sums of one order, and so the same bits. On the processor, for gradients in float32 alone; five
/// products of matrices a step take time: about 15 · rows · columns · min(rows, columns) multiplications and additions.
struct Muon {
  double momentum = 0.95;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-10;  ///< of AdamW
  static constexpr double adam_share = 0.015;

  [[nodiscard]] static std::span<const OptimizerRow> rows() noexcept;
};

}  // namespace ronda
