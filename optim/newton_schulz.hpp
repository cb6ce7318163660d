#pragma once
#include <cstddef>
#include <vector>

#include <ronda/core/stream.hpp>

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

}  // namespace ronda
