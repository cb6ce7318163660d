#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include <ronda/core/buffer.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda::onednn {

/// Channels that our own loops take at once: a vector of the widest processors, two of the others'.
inline constexpr std::int64_t vector = 16;

/// How our own loops see an activation: `count` images of `positions` (height × width), each position a vector of
/// `lanes` channels that lie together. A sample is `groups` images: 1 in NHWC (lanes = C), C/16 in blocks of 16, C in
/// NCHW (one lane). Padding of the last block counts as channels: it is zero and stays zero.
struct Images {
  std::int64_t samples = 0, groups = 0, height = 1, width = 1, lanes = 0;
  [[nodiscard]] std::size_t count() const noexcept { return static_cast<std::size_t>(samples * groups); }
  [[nodiscard]] std::int64_t positions() const noexcept { return height * width; }
  [[nodiscard]] std::int64_t image_size() const noexcept { return positions() * lanes; }
};

/// Zeros, for tensors of such images that are timed.
inline Buffer zeros(const Images& images) {
  return Buffer::host(images.count() * static_cast<std::size_t>(images.image_size()) * sizeof(float));
}
inline float* data(const Buffer& buffer) { return reinterpret_cast<float*>(buffer.data()); }

/// Of (N, H, W, C), or of a plain (N, …, C). Nothing for layouts that lie in another way, which no primitive here
/// prefers.
std::optional<Images> images_of(const TensorDesc& tensor);

/// y = max(x, 0), element by element, as `rectified` has it.
void relu(const float* x, float* y, std::size_t count, int threads);
/// The same in place, for what a library has just written: its own ReLUs make 0 of NaN.
void rectify(float* values, std::size_t count, int threads);
/// y = a + b; y may be a, and b may be a.
void add(const float* a, const float* b, float* y, std::size_t count, int threads);
/// dx = dy where y is positive or NaN, otherwise 0.
void relu_backward(const float* dy, const float* y, float* dx, std::size_t count, int threads);

/// What stands between an operation's output gradient and its parameters' gradients: ReLU's backward, and the bias's.
/// Threads add up samples of their own, and their sums are added in order: equal bits from run to run.
class BiasAndActivation {
 public:
  /// @param channels  without padding
  BiasAndActivation(const Images& images, std::int64_t channels, int threads)
      : images_(images), channels_(channels), threads_(threads) {}

  [[nodiscard]] std::size_t scratch_bytes() const noexcept;

  /// @param y   the activated output: where it is 0 or less, the gradient is 0; null without activation
  /// @param dz  the gradient before activation; not written where y is null
  /// @param db  sums of dz over all positions; null without bias
  void backward(const float* dy, const float* y, float* dz, float* db, std::byte* scratch) const;

 private:
  void add_samples(Range samples, const float* dy, const float* y, float* dz, float* sums) const;

  Images images_;
  std::int64_t channels_;
  int threads_;
};

}  // namespace ronda::onednn
