#include <ronda/layers/dropout_mask.hpp>

#include <algorithm>
#include <cmath>

namespace ronda {

DropoutMask::DropoutMask(const DropoutSpec& spec, std::string_view name, const Shape& shape)
    : name_(name), positions_(1), draws_((shape[shape.rank() - 1] + channels_of_draw - 1) / channels_of_draw) {
  for (int axis = 1; axis + 1 < shape.rank(); ++axis) positions_ *= shape[axis];
  const double dropped = std::clamp(std::round(spec.p * 0x1p16), 1.0, spec.p < 1 ? 0x1p16 - 1 : 0x1p16);
  largest_dropped_ = static_cast<std::uint32_t>(dropped) - 1;
  factor_ = spec.p < 1 ? static_cast<float>(0x1p16 / (0x1p16 - dropped)) : 0.0F;
}

}  // namespace ronda
