#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/detail/picture.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace ronda {
namespace {

/// In the middle, with a ratio from range.least_ratio to its reciprocal.
CropBox middle_box(std::int64_t height, std::int64_t width, const CropRange& range) {
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  const auto rounded = [](double side) { return std::max<std::int64_t>(std::llround(side), 1); };
  CropBox box{0, 0, std::min(height, rounded(w / range.least_ratio)), std::min(width, rounded(h / range.least_ratio))};
  box.top = (height - box.height) / 2;
  box.left = (width - box.width) / 2;
  return box;
}

}  // namespace

void CropRange::check(const char* who) const {
  for (const double each : {least_area, least_ratio})
    if (!(each > 0 && each <= 1))
      throw InputError(std::string(who) + ": the least area and the least ratio are above 0 and at most 1, found " +
                       shortest(each));
}

CropBox random_box(std::int64_t height, std::int64_t width, const CropRange& range, const RngKey& key) {
  const double area = static_cast<double>(height) * static_cast<double>(width), widest = -std::log(range.least_ratio);
  for (std::uint64_t draw = 0; draw < 40; draw += 4) {
    const double share = range.least_area + (1 - range.least_area) * static_cast<double>(key.uniform(draw));
    const double ratio = std::exp(widest * (2 * static_cast<double>(key.uniform(draw + 1)) - 1));
    const std::int64_t box_height = std::llround(std::sqrt(area * share / ratio)),
                       box_width = std::llround(std::sqrt(area * share * ratio));
    if (box_height < 1 || box_width < 1 || box_height > height || box_width > width) continue;
    const auto place = [&](std::int64_t room, std::uint64_t index) {
      return static_cast<std::int64_t>(key.below(static_cast<std::uint64_t>(room + 1), index));
    };
    return {place(height - box_height, draw + 2), place(width - box_width, draw + 3), box_height, box_width};
  }
  return middle_box(height, width, range);
}

void Picture::set_size(std::uint64_t new_height, std::uint64_t new_width, std::size_t file_bytes) {
  const std::uint64_t most = std::min<std::uint64_t>(most_pixels, file_bytes * most_pixels_a_byte);
  if (new_height == 0 || new_width == 0 || new_height > most / new_width)
    throw PictureError("expected from 1 to " + std::to_string(most) + " pixels in " + std::to_string(file_bytes) +
                       " bytes, found " + std::to_string(new_height) + " rows of " + std::to_string(new_width));
  height = static_cast<std::int64_t>(new_height);
  width = static_cast<std::int64_t>(new_width);
}

void Picture::hold(const CropBox& new_part) {
  part = new_part;
  pixels.resize(static_cast<std::size_t>(part.height * part.width * channels));
}

void Picture::resize(std::uint64_t new_height, std::uint64_t new_width, std::size_t file_bytes) {
  set_size(new_height, new_width, file_bytes);
  hold({0, 0, height, width});
}

}  // namespace ronda
