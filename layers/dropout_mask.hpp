#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <ronda/layers/operation_spec.hpp>
#include <ronda/layers/pass.hpp>

namespace ronda {

/// The factors by which a dropout multiplies the elements in one pass. They depend on the logical index of an element,
/// not on the layout.
///
/// Each row of an activation (N, …, C) has `positions` positions of C channels. One draw of 128 bits serves eight
/// neighbouring channels of a position, 16 bits each, so the probability is rounded to 65536ths: to at least one, and
/// to at most 65535 if p is not 1. The factor follows from the rounded probability, which keeps the mean. Spare bits of
/// the last draw of a position are not used.
class DropoutMask {
 public:
  static constexpr std::int64_t channels_of_draw = 8;

  /// @param name   name of the operation in its model, which seeds its draws
  /// @param shape  shape of the activation
  DropoutMask(const DropoutSpec& spec, std::string_view name, const Shape& shape);

  [[nodiscard]] std::int64_t positions() const noexcept { return positions_; }
  [[nodiscard]] std::int64_t draws_of_position() const noexcept { return draws_; }
  /// Index of the first draw of a position of a row.
  [[nodiscard]] std::uint64_t draw(const Pass& pass, std::int64_t row, std::int64_t position) const noexcept {
    const std::uint64_t place = pass.first_row + static_cast<std::uint64_t>(row);
    return (place * static_cast<std::uint64_t>(positions_) + static_cast<std::uint64_t>(position)) *
           static_cast<std::uint64_t>(draws_);
  }
  [[nodiscard]] RngKey key(const Pass& pass) const { return pass.key.derived(name_); }

  /// The factor of one channel.
  [[nodiscard]] float factor_of(const RngKey& key, const Pass& pass, std::int64_t row, std::int64_t position,
                                std::int64_t channel) const;
  /// The factors of the first `factors.size()` channels of the position with the first draw `draw`.
  void write_factors(const RngKey& key, std::uint64_t draw, std::span<float> factors) const;

  /// An element is dropped if its 16 bits are at most this number.
  [[nodiscard]] std::uint32_t largest_dropped() const noexcept { return largest_dropped_; }
  /// Factor of the elements that are kept; 0 if all are dropped.
  [[nodiscard]] float factor() const noexcept { return factor_; }

 private:
  std::string name_;
  std::int64_t positions_, draws_;
  std::uint32_t largest_dropped_;
  float factor_;
};

}  // namespace ronda
