#include <ronda/core/text.hpp>

#include <array>
#include <charconv>
#include <clocale>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <locale.h>  // newlocale, uselocale: POSIX
#include <system_error>

namespace ronda {
namespace {

locale_t classic() noexcept {
  static const locale_t locale = ::newlocale(LC_ALL_MASK, "C", nullptr);
  return locale;
}

int print_classic(std::span<char> buffer, const char* format, std::va_list arguments) {
  const locale_t before = ::uselocale(classic());  // changes only this thread's
  const int length = std::vsnprintf(buffer.data(), buffer.size(), format, arguments);
  ::uselocale(before);
  return length;
}

}  // namespace

int print_into(std::span<char> buffer, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  const int length = print_classic(buffer, format, arguments);
  va_end(arguments);
  return length;
}

std::string formatted(const char* format, ...) {
  std::array<char, 512> text{};
  std::va_list arguments;
  va_start(arguments, format);
  print_classic(text, format, arguments);
  va_end(arguments);
  return text.data();
}

double read_number(const char* text, char** end) noexcept { return ::strtod_l(text, end, classic()); }

namespace {

template <class T>
std::string shortest_digits(T number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

}  // namespace

std::string shortest(double number) { return shortest_digits(number); }
std::string shortest(float number) { return shortest_digits(number); }

std::string human_bytes(std::size_t bytes) {
  static constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return formatted("%.*f %s", unit == 0 ? 0 : 1, value, units[unit]);
}

std::optional<double> parse_duration(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  const std::string_view unit(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr));
  const double seconds = number * (unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0);
  if (parsed.ec != std::errc() || !(seconds > 0) || seconds > 1e9) return std::nullopt;
  return seconds;
}

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
