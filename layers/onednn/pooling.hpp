#pragma once
#include <cstddef>

#include <ronda/layers/onednn/images.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda::onednn {

/// Pooling by plain loops over vectors of channels, 3 to 5 times as fast as the library's. Of each window's maximum the
/// place is remembered (kh · kernel + kw; the first of equals), in a byte where it fits.
class Pooling {
 public:
  /// @param input   what is pooled
  /// @param output  the pooled shape; its layout is the input's
  Pooling(const PoolSpec& spec, const Images& input, const Shape& output);

  [[nodiscard]] std::size_t winner_bytes() const noexcept;  ///< 0 for an average

  void forward(const float* x, float* y, std::byte* winners, int threads) const;
  /// Overwrites dx, elements outside all windows with 0.
  void backward(const float* dy, const std::byte* winners, float* dx, int threads) const;

 private:
  [[nodiscard]] bool is_wide() const noexcept { return spec_.kernel * spec_.kernel > 256; }

  PoolSpec spec_;
  Images input_, output_;
};

}  // namespace ronda::onednn
