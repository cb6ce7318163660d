#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <ronda/core/buffer.hpp>
#include <ronda/core/number.hpp>
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

/// What layers of this processor are made of. They compute in float32 with either.
template <class T>
concept LayerNumber = std::same_as<T, float> || std::same_as<T, BFloat16>;

/// Calls body(std::type_identity<T>()) with the C++ type of a LayerNumber's DType. Throws LogicError for any other.
template <class Body>
decltype(auto) with_layer_number(DType dtype, Body&& body) {
  if (dtype == DType::float32) return body(std::type_identity<float>());
  if (dtype == DType::bfloat16) return body(std::type_identity<BFloat16>());
  throw LogicError("no layer of this processor computes with " + std::string(name_of(dtype)));
}

/// Of a question to the picker.
[[nodiscard]] std::string text_of_type(DType dtype);

/// Zeros, for tensors of such images that are timed.
template <LayerNumber T>
Buffer zeros(const Images& images) {
  return Buffer::host(images.count() * static_cast<std::size_t>(images.image_size()) * sizeof(T));
}
template <class T>
T* data(const Buffer& buffer) {
  return reinterpret_cast<T*>(buffer.data());
}

/// Of (N, H, W, C), or of a plain (N, …, C). Nothing for layouts that lie in another way, which no primitive here
/// prefers.
std::optional<Images> images_of(const TensorDesc& tensor);

// Functions of LayerNumbers, here and beside: for float and BFloat16.

/// y = max(x, 0), element by element, as `rectified` has it.
template <LayerNumber T>
void relu(const T* x, T* y, std::size_t count, int threads);
/// The same in place, for what a library has just written: its own ReLUs make 0 of NaN.
template <LayerNumber T>
void rectify(T* values, std::size_t count, int threads);
/// y = a + b; y may be a, and b may be a.
template <LayerNumber T>
void add(const T* a, const T* b, T* y, std::size_t count, int threads);
/// dx = dy where y is positive or NaN, otherwise 0.
template <LayerNumber T>
void relu_backward(const T* dy, const T* y, T* dx, std::size_t count, int threads);

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
  template <LayerNumber T>
  void backward(const T* dy, const T* y, T* dz, T* db, std::byte* scratch) const;

 private:
  template <LayerNumber T>
  void add_samples(Range samples, const T* dy, const T* y, T* dz, double* sums) const;

  Images images_;
  std::int64_t channels_;
  int threads_;
};

}  // namespace ronda::onednn
