#include <ronda/data/detail/picture.hpp>

#include <algorithm>
#include <string>

namespace ronda {

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
