#pragma once
#include <string>

#include <ronda/core/dtype.hpp>
#include <ronda/core/shape.hpp>

namespace ronda {

/// A field of a sample: `input`, float32, (28, 28, 1).
struct Field {
  std::string name;
  Shape shape;  ///< shape of one sample, without the batch axis
  DType dtype = DType::float32;
};

}  // namespace ronda
