#pragma once
#include <ronda/layers/cudnn/arithmetic.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda::cudnn {

[[nodiscard]] inline PoolGeometry geometry(const Shape& input, const PoolSpec& spec) {
  const Shape output = pool_output(input, spec);
  return {.height = input[1],
          .width = input[2],
          .channels = input[3],
          .rows = output[1],
          .columns = output[2],
          .kernel = spec.kernel,
          .stride = spec.stride,
          .padding = spec.padding,
          .maximum = spec.kind == PoolKind::maximum};
}

}  // namespace ronda::cudnn
