// What a build without PNG has in the place of the folder png/.
#include <ronda/data/detail/picture.hpp>
#include <ronda/data/optional_formats.hpp>
#include <ronda/data/picture_files.hpp>

namespace ronda {

OptionalFormat png_format() { return {"PNG", "", "libpng-dev"}; }

void decode_png(std::span<const std::byte>, Picture&) { throw lacking(png_format()); }

std::vector<std::byte> encode_png(std::uint32_t, std::uint32_t, std::span<const std::uint8_t>) {
  throw lacking(png_format());
}

}  // namespace ronda
