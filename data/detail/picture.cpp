#include <ronda/data/detail/picture.hpp>

#include <algorithm>
#include <string>

namespace ronda {

void Picture::resize(std::uint64_t new_height, std::uint64_t new_width, std::size_t file_bytes) {
  const std::uint64_t most = std::min<std::uint64_t>(most_pixels, file_bytes * most_pixels_a_byte);
  if (new_height == 0 || new_width == 0 || new_height > most / new_width)
    throw PictureError("expected from 1 to " + std::to_string(most) + " pixels in " + std::to_string(file_bytes) +
                       " bytes, found " + std::to_string(new_height) + " rows of " + std::to_string(new_width));
  height = static_cast<std::int64_t>(new_height);
  width = static_cast<std::int64_t>(new_width);
  pixels.resize(static_cast<std::size_t>(height * width * channels));
}

}  // namespace ronda
