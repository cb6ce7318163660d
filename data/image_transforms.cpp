#include <ronda/core/error.hpp>
#include <ronda/data/transform.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <sstream>

namespace ronda {
namespace {

/// The field `input` as an image.
struct Image {
  explicit Image(const SampleRow& sample) : tensor(sample.field("input")) {
    if (tensor.dtype() != DType::float32 || tensor.shape().rank() != 3)
      throw InputError("an image is float32 (height, width, channels), found " + tensor.desc().text());
    height = tensor.shape()[0];
    width = tensor.shape()[1];
    channels = tensor.shape()[2];
  }
  [[nodiscard]] std::span<float> row(std::int64_t y) const {
    return {tensor.pointer<float>() + y * width * channels, static_cast<std::size_t>(width * channels)};
  }

  Tensor tensor;
  std::int64_t height, width, channels;
};

void flip(const Image& image) {
  for (std::int64_t y = 0; y < image.height; ++y) {
    float* const row = image.row(y).data();
    for (std::int64_t left = 0, right = image.width - 1; left < right; ++left, --right)
      std::swap_ranges(row + left * image.channels, row + (left + 1) * image.channels, row + right * image.channels);
  }
}

/// Moves a row's pixels by dx to the right; what comes in is zero.
void shift_row(std::span<float> row, std::int64_t floats) {
  const auto by = static_cast<std::size_t>(std::abs(floats));
  if (by >= row.size()) return static_cast<void>(std::ranges::fill(row, 0.0F));
  const std::size_t kept = (row.size() - by) * sizeof(float);
  if (floats > 0) {
    std::memmove(row.data() + by, row.data(), kept);
    std::ranges::fill(row.first(by), 0.0F);
  } else if (floats < 0) {
    std::memmove(row.data(), row.data() + by, kept);
    std::ranges::fill(row.last(by), 0.0F);
  }
}

void shift(const Image& image, std::int64_t dy, std::int64_t dx) {
  const std::int64_t first = dy > 0 ? image.height - 1 : 0,
                     step = dy > 0 ? -1 : 1;  // no row is read after it is written
  for (std::int64_t i = 0; i < image.height; ++i) {
    const std::int64_t y = first + i * step, from = y - dy;
    if (from < 0 || from >= image.height) {
      std::ranges::fill(image.row(y), 0.0F);
      continue;
    }
    if (from != y) std::ranges::copy(image.row(from), image.row(y).begin());
    shift_row(image.row(y), dx * image.channels);
  }
}

}  // namespace

Transform random_flip(double probability) {
  if (!(probability >= 0 && probability <= 1))
    throw InputError("random_flip: a probability is from 0 to 1, found " + std::to_string(probability));
  std::ostringstream name;
  name << "random_flip(" << probability << ")";
  return {name.str(), [probability](const SampleRow& sample, const RngKey& key) {
            const Image image(sample);
            if (static_cast<double>(key.uniform(0)) < probability) flip(image);
          }};
}

Transform random_shift(std::int64_t pixels) {
  constexpr std::int64_t most = 1 << 20;
  if (pixels < 0 || pixels > most)
    throw InputError("random_shift: pixels are from 0 to " + std::to_string(most) + ", found " +
                     std::to_string(pixels));
  return {"random_shift(" + std::to_string(pixels) + ")", [pixels](const SampleRow& sample, const RngKey& key) {
            const auto draw = [&](std::uint64_t axis) {
              return static_cast<std::int64_t>(key.below(static_cast<std::uint64_t>(2 * pixels + 1), axis)) - pixels;
            };
            shift(Image(sample), draw(0), draw(1));
          }};
}

}  // namespace ronda
