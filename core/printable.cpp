#include <ronda/core/printable.hpp>

#include <cstddef>
#include <cstdint>

namespace ronda {
namespace {

/// The character that `text` begins with, in its bytes; none of it where it is no UTF-8, or longer than need be.
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;
};

Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  std::uint32_t code = lead & (0xffU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool shortest = bytes == 2 || (bytes == 3 ? code >= 0x800 : code >= 0x10000);
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return shortest && !surrogate && code < 0x110000 ? Character{code, bytes} : Character{};
}

/// It stands in a line where it was written, and changes nothing else.
bool is_harmless(std::uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool turns_lines = (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
                           (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
  return !control && !turns_lines;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const Character character = first_of(text);
    const std::size_t bytes = character.bytes > 0 ? character.bytes : 1;
    if (character.bytes > 0 && is_harmless(character.code))
      shown += text.substr(0, bytes);
    else
      shown += '?';
    text.remove_prefix(bytes);
  }
  return shown;
}

std::size_t utf8_prefix(std::string_view text) {
  std::size_t sound = 0;
  while (sound < text.size()) {
    const std::size_t bytes = first_of(text.substr(sound)).bytes;
    if (bytes == 0) break;
    sound += bytes;
  }
  return sound;
}

}  // namespace ronda
