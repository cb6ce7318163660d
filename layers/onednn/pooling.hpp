#pragma once
#include <cstddef>

#include <ronda/layers/onednn/images.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda::onednn {

/// Pooling by plain loops over vectors of channels, 3 to 5 times as fast as the library's. Of each window's maximum the
/// place is remembered (kh · kernel.width + kw; the first of equals, the last NaN), in a byte where it fits. A ReLU
/// before the pooling is part of it: of the maximum, or of each element of a mean.
class Pooling {
 public:
  /// @param input   what is pooled
  /// @param output  the pooled shape; its layout is the input's
  /// @param relu    the elements are rectified first
  Pooling(const PoolSpec& spec, const Images& input, const Shape& output, bool relu = false);

  [[nodiscard]] std::size_t winner_bytes() const noexcept;  ///< 0 for an average

  template <LayerNumber T>
  void forward(const T* x, T* y, std::byte* winners, int threads) const;
  /// Of backward in that type: where windows overlap, half gradients are summed in float32.
  [[nodiscard]] std::size_t scratch_bytes(DType dtype, int threads) const noexcept;
  /// Overwrites dx, elements outside all windows with 0: the gradient behind the ReLU, if there is one.
  template <LayerNumber T>
  void backward(const T* dy, const std::byte* winners, T* dx, std::byte* scratch, int threads) const;

 private:
  [[nodiscard]] bool is_wide() const noexcept { return spec_.kernel.area() > 256; }
  /// Whether each element's gradient is written once.
  [[nodiscard]] bool is_direct() const noexcept;

  PoolSpec spec_;
  Images input_, output_;
  bool relu_;
};

}  // namespace ronda::onednn
