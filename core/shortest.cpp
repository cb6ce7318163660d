#include <ronda/core/shortest.hpp>

#include <array>
#include <charconv>

namespace ronda {
namespace {

template <class T>
std::string shortest_digits(T number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

}  // namespace

std::string shortest(double number) { return shortest_digits(number); }
std::string shortest(float number) { return shortest_digits(number); }

}  // namespace ronda
