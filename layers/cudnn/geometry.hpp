#pragma once
#include <ronda/layers/cudnn/arithmetic.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda::cudnn {

[[nodiscard]] inline PoolGeometry geometry(const Shape& input, const PoolSpec& spec) {
  const Shape output = pool_output(input, spec);
  return {.vertical = {input[1], output[1], spec.kernel.height, spec.stride.height, spec.padding.height},
          .horizontal = {input[2], output[2], spec.kernel.width, spec.stride.width, spec.padding.width},
          .channels = input[3],
          .maximum = spec.kind == PoolKind::maximum};
}

}  // namespace ronda::cudnn
