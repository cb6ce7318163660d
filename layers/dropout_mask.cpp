#include <ronda/layers/dropout_mask.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace ronda {

DropoutMask::DropoutMask(const DropoutSpec& spec, std::string_view name, const Shape& shape)
    : name_(name), positions_(1), draws_((shape[shape.rank() - 1] + channels_of_draw - 1) / channels_of_draw) {
  for (int axis = 1; axis + 1 < shape.rank(); ++axis) positions_ *= shape[axis];
  const double dropped = std::clamp(std::round(spec.p * 0x1p16), 1.0, spec.p < 1 ? 0x1p16 - 1 : 0x1p16);
  largest_dropped_ = static_cast<std::uint32_t>(dropped) - 1;
  factor_ = spec.p < 1 ? static_cast<float>(0x1p16 / (0x1p16 - dropped)) : 0.0F;
}

float DropoutMask::factor_of(const RngKey& key, const Pass& pass, std::int64_t row, std::int64_t position,
                             std::int64_t channel) const {
  const std::int64_t draws = channel / channels_of_draw, place = channel % channels_of_draw;
  const auto words = key.bits(draw(pass, row, position) + static_cast<std::uint64_t>(draws));
  const std::uint32_t bits = words[static_cast<std::size_t>(place / 2)] >> (place % 2 * 16) & 0xffff;
  return bits <= largest_dropped_ ? 0 : factor_;
}

void DropoutMask::write_factors(const RngKey& key, std::uint64_t draw, std::span<float> factors) const {
  std::array<std::uint64_t, 16> counters;
  std::array<std::uint32_t, 4 * counters.size()> words;
  std::array<float, 2 * words.size()> drawn;
  while (!factors.empty()) {
    for (std::uint64_t& counter : counters) counter = draw++;
    key.bits(counters, words);
    for (std::size_t i = 0; i < words.size(); ++i) {
      drawn[2 * i] = (words[i] & 0xffff) <= largest_dropped_ ? 0 : factor_;
      drawn[2 * i + 1] = words[i] >> 16 <= largest_dropped_ ? 0 : factor_;
    }
    const std::size_t count = std::min(factors.size(), drawn.size());
    std::copy_n(drawn.begin(), count, factors.begin());
    factors = factors.subspan(count);
  }
}

}  // namespace ronda
