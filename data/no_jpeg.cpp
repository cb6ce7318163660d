// What a build without JPEG has in the place of the folder jpeg/.
#include <ronda/data/detail/picture.hpp>
#include <ronda/data/optional_formats.hpp>

namespace ronda {

OptionalFormat jpeg_format() { return {"JPEG", "", "libjpeg-dev"}; }

void decode_jpeg(std::span<const std::byte>, Picture&, const WantedPart&) { throw lacking(jpeg_format()); }

}  // namespace ronda
