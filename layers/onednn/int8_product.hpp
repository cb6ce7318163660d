#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ronda::onednn {

/// Sums of products of bytes and int8 weights, exact in int32, and what is made of them in float32:
///
///     y[r, o]  =  (Σ over taps t, i of 0 … 3:  x[r · step + taps[t] + i] · weight[o / 16, t, o mod 16, i]  − shift[o])
///                 · scale[o]  +  bias[o]
///
/// A row of a matrix is taps 0, 4, 8, …; a window of an image is a tap for each four bytes of it, wherever they lie.
/// So four bytes of a row are multiplied by those of sixteen outputs in one instruction, AVX-512 VNNI's, whose sums
/// cannot saturate; without it by pairs of numbers of 16 bits, as exact (AVX2), or by plain loops.
struct Int8Product {
  static constexpr std::int64_t lanes = 16;  ///< outputs at once
  static constexpr std::int64_t width = 4;   ///< bytes of a tap

  std::span<const std::int32_t> taps;
  const std::int8_t* weight;  ///< zero where an output or a byte is padding
  std::int64_t outputs;
  const float *scale, *bias;  ///< of whole sixteens of outputs, as is `shift`
  const std::int32_t* shift;
  bool relu;

  [[nodiscard]] std::int64_t sixteens() const noexcept { return (outputs + lanes - 1) / lanes; }
  /// Of the weights of sixteen outputs.
  [[nodiscard]] std::int64_t sixteen_bytes() const noexcept {
    return static_cast<std::int64_t>(taps.size()) * lanes * width;
  }

  /// What a processor has; all give the same.
  enum class Kernel : std::uint8_t { plain, avx2, vnni };
  [[nodiscard]] static Kernel best() noexcept;
  [[nodiscard]] static std::string_view name_of(Kernel kernel) noexcept;

  /// Rows of y, of `outputs` numbers each, one after another. Three bytes behind the last tap's may be read.
  /// @param kernel  `best`, or a lesser one
  void run(const std::uint8_t* x, std::int64_t step, std::int64_t rows, float* y, Kernel kernel = best()) const;
  /// A number of y.
  [[nodiscard]] float number(std::int32_t sum, std::int64_t output) const;
  /// sums[o] = byte · Σ weight[o, …], of whole sixteens.
  void sum_weights(std::uint8_t byte, std::int32_t* sums) const;
};

/// Bytes of `count` numbers, as int8::byte_of has them. Returns whether all were finite.
bool quantize(const float* x, std::int64_t count, float inverse, float zero, std::uint8_t* bytes);

}  // namespace ronda::onednn
