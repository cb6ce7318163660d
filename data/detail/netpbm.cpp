#include <ronda/data/detail/picture.hpp>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string>

namespace ronda {
namespace {

/// The header's next number; `at` is behind it then. Blanks and comments, from # to the line's end, come before it.
std::uint64_t next_number(std::span<const std::byte> file, std::size_t& at) {
  const auto character = [&] { return at < file.size() ? std::to_integer<int>(file[at]) : -1; };
  while (std::isspace(character()) != 0 || character() == '#')
    if (character() == '#')
      while (at < file.size() && character() != '\n') ++at;
    else
      ++at;
  constexpr std::uint64_t most = 1 << 30;
  std::uint64_t number = 0;
  const std::size_t begin = at;
  for (; std::isdigit(character()) != 0 && number < most; ++at) number = 10 * number + (character() - '0');
  if (at == begin) throw PictureError("expected a number at byte " + std::to_string(at) + " of its header");
  return number;
}

}  // namespace

void decode_netpbm(std::span<const std::byte> file, Picture& picture) {
  const std::size_t channels = std::to_integer<int>(file[1]) == '5' ? 1 : 3;
  std::size_t at = 2;
  const std::uint64_t width = next_number(file, at), height = next_number(file, at), largest = next_number(file, at);
  if (largest < 1 || largest > 255)
    throw PictureError("expected bytes, so a largest value from 1 to 255, found " + std::to_string(largest));
  picture.resize(height, width, file.size());
  ++at;  // one blank
  const std::size_t pixels = picture.pixels.size() / Picture::channels, bytes = pixels * channels;
  const std::size_t found = file.size() - std::min(at, file.size());
  if (found < bytes)
    throw PictureError("expected " + std::to_string(bytes) + " bytes of pixels, found " + std::to_string(found));
  for (std::size_t i = 0; i < picture.pixels.size(); ++i) {
    const std::size_t from = channels == 3 ? i : i / Picture::channels;
    const auto value = std::min<std::uint64_t>(std::to_integer<std::uint64_t>(file[at + from]), largest);
    picture.pixels[i] = static_cast<std::uint8_t>((value * 255 + largest / 2) / largest);
  }
}

}  // namespace ronda
