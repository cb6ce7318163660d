#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ronda::test {

/// What a PNG file is made of: its pixels' bytes row after row.
struct PngPicture {
  unsigned height, width;
  int color_type, bit_depth;  ///< PNG_COLOR_TYPE_…
  std::vector<std::uint8_t> bytes;
  bool interlaced = false;
  std::vector<std::uint8_t> palette = {};  ///< red, green, blue a colour
};
[[nodiscard]] std::string png_of(const PngPicture& picture);

struct JpegForm {
  int quality = 100;
  int across = 1, down = 1;  ///< of three channels: pixels that share their colour
  bool progressive = false;
};
/// @param channels  1, 3, or 4: inverted CMYK as Adobe's
[[nodiscard]] std::string jpeg_of(unsigned height, unsigned width, int channels, std::vector<std::uint8_t> bytes,
                                  const JpegForm& form = {});

}  // namespace ronda::test
