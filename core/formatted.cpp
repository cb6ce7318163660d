#include <ronda/core/formatted.hpp>

#include <array>
#include <clocale>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include <locale.h>  // newlocale, uselocale: POSIX

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

}  // namespace ronda
