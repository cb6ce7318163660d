#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include <ronda/core/error.hpp>
#include <ronda/data/transform.hpp>

namespace ronda {

/// The field `input` of a sample as an image.
struct Image {
  explicit Image(const SampleRow& sample) : tensor(sample.field("input")) {
    if (tensor.dtype() != DType::float32 || tensor.shape().rank() != 3)
      throw InputError("an image is float32 (height, width, channels), found " + tensor.desc().text());
    height = tensor.shape()[0];
    width = tensor.shape()[1];
    channels = tensor.shape()[2];
  }
  [[nodiscard]] std::span<float> pixels() const {
    return {tensor.pointer<float>(), static_cast<std::size_t>(tensor.shape().count())};
  }
  [[nodiscard]] std::span<float> row(std::int64_t y) const {
    return {tensor.pointer<float>() + y * width * channels, static_cast<std::size_t>(width * channels)};
  }
  /// The channels of a pixel.
  [[nodiscard]] std::span<float> pixel(std::int64_t y, std::int64_t x) const {
    return row(y).subspan(static_cast<std::size_t>(x * channels), static_cast<std::size_t>(channels));
  }

  Tensor tensor;
  std::int64_t height, width, channels;
};

}  // namespace ronda
