#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ronda {

/// A picture as the bytes of a PNG file.
/// @param rgb  red, green and blue of each pixel, row after row
/// Throws InputError in a build without PNG.
[[nodiscard]] std::vector<std::byte> encode_png(std::uint32_t height, std::uint32_t width,
                                                std::span<const std::uint8_t> rgb);

}  // namespace ronda
