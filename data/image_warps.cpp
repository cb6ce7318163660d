// Transforms that read an image's pixels at other places than they write them: from a copy.
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/detail/image.hpp>
#include <ronda/data/detail/picture.hpp>
#include <ronda/data/transform.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

namespace ronda {
namespace {

/// An image as it was.
class Original {
 public:
  Original(const Image& image, std::span<float> scratch)
      : height(image.height),
        width(image.width),
        channels_(static_cast<std::size_t>(image.channels)),
        pixels_(scratch) {
    if (scratch.size() < image.pixels().size())
      throw LogicError("a transform that needs scratch memory was given too little of it");
    std::ranges::copy(image.pixels(), scratch.begin());
  }

  [[nodiscard]] const float* pixel(std::int64_t y, std::int64_t x) const {
    return pixels_.data() + static_cast<std::size_t>(y * width + x) * channels_;
  }

  const std::int64_t height, width;

 private:
  std::size_t channels_;
  std::span<float> pixels_;
};

/// A place on an axis between the pixels `lower` and `lower + 1`.
struct Between {
  explicit Between(double place)
      : lower(static_cast<std::int64_t>(std::floor(place))),
        upper_share(static_cast<float>(place - std::floor(place))) {}
  std::int64_t lower;
  float upper_share;
};

/// Writes the image at (y, x), in pixels and their parts, to `result`.
/// @param at  gives the channels of a whole pixel; null: zeros
template <class At>
void write_bilinear(double y, double x, const At& at, std::span<float> result) {
  const Between row(y), column(x);
  const std::int64_t below = row.lower + (row.upper_share > 0 ? 1 : 0),  // a pixel without a share is not looked at
      right = column.lower + (column.upper_share > 0 ? 1 : 0);
  const float* const corners[] = {at(row.lower, column.lower), at(row.lower, right), at(below, column.lower),
                                  at(below, right)};
  for (std::size_t c = 0; c < result.size(); ++c) {
    const auto value = [&](const float* pixel) { return pixel == nullptr ? 0.0F : pixel[c]; };
    const auto between = [](float a, float b, float share) { return a + share * (b - a); };
    result[c] = between(between(value(corners[0]), value(corners[1]), column.upper_share),
                        between(value(corners[2]), value(corners[3]), column.upper_share), row.upper_share);
  }
}

/// The box becomes the whole image. Beyond its border are its own outermost pixels.
void enlarge(const CropBox& box, const Image& image, std::span<float> scratch) {
  const Original original(image, scratch);
  const auto place = [](std::int64_t i, std::int64_t from, std::int64_t to) {  // pixels' middles are at halves
    return (static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5;
  };
  const auto at = [&](std::int64_t y, std::int64_t x) {
    return original.pixel(box.top + std::clamp<std::int64_t>(y, 0, box.height - 1),
                          box.left + std::clamp<std::int64_t>(x, 0, box.width - 1));
  };
  for (std::int64_t y = 0; y < image.height; ++y)
    for (std::int64_t x = 0; x < image.width; ++x)
      write_bilinear(place(y, box.height, image.height), place(x, box.width, image.width), at, image.pixel(y, x));
}

/// By an angle in radians, against the clock.
void rotate(double angle, const Image& image, std::span<float> scratch) {
  const Original original(image, scratch);
  const double cosine = std::cos(angle), sine = std::sin(angle);
  const double middle_y = static_cast<double>(image.height - 1) / 2,
               middle_x = static_cast<double>(image.width - 1) / 2;
  const auto at = [&](std::int64_t y, std::int64_t x) -> const float* {
    return y < 0 || x < 0 || y >= original.height || x >= original.width ? nullptr : original.pixel(y, x);
  };
  for (std::int64_t y = 0; y < image.height; ++y)
    for (std::int64_t x = 0; x < image.width; ++x) {
      const double dy = static_cast<double>(y) - middle_y, dx = static_cast<double>(x) - middle_x;
      write_bilinear(middle_y + cosine * dy + sine * dx, middle_x - sine * dy + cosine * dx, at, image.pixel(y, x));
    }
}

/// The place within an axis whose pixel is at `place`, which may be beyond its border; -1: none.
std::int64_t within(std::int64_t place, std::int64_t extent, Border border) {
  if (place >= 0 && place < extent) return place;
  switch (border) {
    case Border::zero: break;
    case Border::edge: return std::clamp<std::int64_t>(place, 0, extent - 1);
    case Border::reflect: return place < 0 ? -place : 2 * (extent - 1) - place;
  }
  return -1;
}

/// The pixel at (y, x) becomes that at (y + top, x + left).
void crop(std::int64_t top, std::int64_t left, Border border, const Image& image, std::span<float> scratch) {
  const Original original(image, scratch);
  for (std::int64_t y = 0; y < image.height; ++y)
    for (std::int64_t x = 0; x < image.width; ++x) {
      const std::int64_t from_y = within(y + top, image.height, border), from_x = within(x + left, image.width, border);
      const std::span<float> pixel = image.pixel(y, x);
      if (from_y < 0 || from_x < 0)
        std::ranges::fill(pixel, 0.0F);
      else
        std::copy_n(original.pixel(from_y, from_x), pixel.size(), pixel.begin());
    }
}

std::string name_of(Border border) {
  switch (border) {
    case Border::zero: return "zero";
    case Border::edge: return "edge";
    case Border::reflect: return "reflect";
  }
  return "?";
}

template <class... Parts>
std::string text_of(const Parts&... parts) {
  TextWriter text;
  text.precision(17);
  (text << ... << parts);
  return text.str();
}

}  // namespace

Transform random_crop(std::int64_t padding, Border border) {
  constexpr std::int64_t most = 1 << 20;
  if (padding < 0 || padding > most)
    throw InputError(text_of("random_crop: a padding is from 0 to ", most, " pixels, found ", padding));
  return {
      text_of("random_crop(", padding, ", ", name_of(border), ")"),
      [padding, border](const SampleRow& sample, const RngKey& key) {
        const Image image(sample);
        if (border == Border::reflect && padding >= std::min(image.height, image.width))
          throw InputError(text_of("reflected, an image of ", image.tensor.shape().text(), " has padding of less than ",
                                   std::min(image.height, image.width), " pixels, expected ", padding));
        const auto draw = [&](std::uint64_t axis) {
          return static_cast<std::int64_t>(key.below(static_cast<std::uint64_t>(2 * padding + 1), axis)) - padding;
        };
        crop(draw(0), draw(1), border, image, sample.scratch());
      }};
}

Transform random_resized_crop(double least_area, double least_ratio) {
  const CropRange range{least_area, least_ratio};
  range.check("random_resized_crop");
  return {text_of("random_resized_crop(", least_area, ", ", least_ratio, ")"),
          [range](const SampleRow& sample, const RngKey& key) {
            const Image image(sample);
            enlarge(random_box(image.height, image.width, range, key), image, sample.scratch());
          }};
}

Transform random_rotation(double degrees) {
  if (!(degrees >= 0 && degrees <= 180))
    throw InputError(text_of("random_rotation: degrees are from 0 to 180, found ", degrees));
  return {text_of("random_rotation(", degrees, ")"), [degrees](const SampleRow& sample, const RngKey& key) {
            const double angle = degrees * (2 * static_cast<double>(key.uniform(0)) - 1);
            rotate(angle * std::numbers::pi / 180, Image(sample), sample.scratch());
          }};
}

}  // namespace ronda
