#include <ronda/core/error.hpp>
#include <ronda/data/picture_files.hpp>

#include <png.h>

#include <string>

namespace ronda {

std::vector<std::byte> encode_png(std::uint32_t height, std::uint32_t width, std::span<const std::uint8_t> rgb) {
  if (rgb.size() != std::size_t{height} * width * 3) throw LogicError("a picture has three bytes a pixel");
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = height;
  image.width = width;
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::vector<std::byte> file(bytes);
  if (png_image_write_to_memory(&image, file.data(), &bytes, 0, rgb.data(), 0, nullptr) == 0)
    throw ResourceError(std::string("libpng cannot encode a picture: ") + image.message);
  file.resize(bytes);
  return file;
}

}  // namespace ronda
