#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ronda {

/// Encodes a picture as a PNG file.
/// @param rgb  red, green and blue of each pixel, row by row
/// Throws InputError in a build without PNG.
[[nodiscard]] std::vector<std::byte> encode_png(std::uint32_t height, std::uint32_t width,
                                                std::span<const std::uint8_t> rgb);

}  // namespace ronda
