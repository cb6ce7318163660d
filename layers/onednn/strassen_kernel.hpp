#pragma once
#include <array>

#include <ronda/layers/onednn/strassen_tile.hpp>

/// What kernels of a tile share. A kernel for a set of instructions is a function
///
///     template <bool paired, int... terms>
///     void multiply(const Factors& factors, const Sum* sums, Ahead& ahead);
///
/// that computes one product of two factors, and so many sums with it as there are `terms`, of so many terms each.
namespace ronda::onednn::strassen {

/// `to` = a product's result and some terms. The third is c's own: what comes before it is multiplied with `unscale`.
struct Sum {
  Rows<float> to;
  std::array<Rows<const float>, 3> terms;
  float unscale = 1;
};

}  // namespace ronda::onednn::strassen
