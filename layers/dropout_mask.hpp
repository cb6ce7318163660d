#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <ronda/layers/operation_spec.hpp>
#include <ronda/layers/pass.hpp>

namespace ronda {

/// What a dropout multiplies each element with, in one pass: by its number, whatever the layout.
///
/// An activation (N, …, C) is, for each row, `positions` times C channels. One draw of 128 bits decides about eight
/// neighbouring channels of a position: 16 bits for each, so the probability is rounded to 65536ths: to one at least,
/// and to 65535 at most where p is not 1. The factor is that of the rounded probability, so the mean stays. The last
/// draw of a position may have bits left over.
class DropoutMask {
 public:
  static constexpr std::int64_t channels_of_draw = 8;

  /// @param name   of the operation in its model, which tells its draws from others'
  /// @param shape  of the activation
  DropoutMask(const DropoutSpec& spec, std::string_view name, const Shape& shape);

  [[nodiscard]] std::int64_t positions() const noexcept { return positions_; }
  [[nodiscard]] std::int64_t draws_of_position() const noexcept { return draws_; }
  /// Where the draws of a position of a row begin.
  [[nodiscard]] std::uint64_t draw(const Pass& pass, std::int64_t row, std::int64_t position) const noexcept {
    const std::uint64_t place = pass.first_row + static_cast<std::uint64_t>(row);
    return (place * static_cast<std::uint64_t>(positions_) + static_cast<std::uint64_t>(position)) *
           static_cast<std::uint64_t>(draws_);
  }
  [[nodiscard]] RngKey key(const Pass& pass) const { return pass.key.derived(name_); }

  /// Of one channel.
  [[nodiscard]] float factor_of(const RngKey& key, const Pass& pass, std::int64_t row, std::int64_t position,
                                std::int64_t channel) const;
  /// The same of the first channels of the position whose draws begin at `draw`, many at once.
  void write_factors(const RngKey& key, std::uint64_t draw, std::span<float> factors) const;

  /// An element is dropped where its bits are not a larger number.
  [[nodiscard]] std::uint32_t largest_dropped() const noexcept { return largest_dropped_; }
  /// Of an element that is kept; 0 where all are dropped.
  [[nodiscard]] float factor() const noexcept { return factor_; }

 private:
  std::string name_;
  std::int64_t positions_, draws_;
  std::uint32_t largest_dropped_;
  float factor_;
};

}  // namespace ronda
