#pragma once
#include <cstddef>
#include <vector>

#include <ronda/core/stream.hpp>

namespace ronda {

/// Makes matrices nearly orthogonal: five quintic steps of Newton and Schulz, see Muon. Allocates nothing but by
/// `reserve`. Each element of a product is summed in one order, so the bits do not depend on threads.
class NewtonSchulz {
 public:
  /// Makes room for matrices of this size.
  void reserve(std::size_t rows, std::size_t columns);
  /// Changes a matrix that there is room for, row-major, in place.
  /// @param norm  its Frobenius norm
  void operator()(float* matrix, std::size_t rows, std::size_t columns, double norm, Stream& stream);

 private:
  std::vector<float> x_, y_, a_, b_;  ///< padded with zeros to whole tiles
};

}  // namespace ronda
