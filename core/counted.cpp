#include <ronda/core/counted.hpp>
#include <ronda/core/formatted.hpp>

#include <array>

namespace ronda {

std::string human_bytes(std::size_t bytes) {
  static constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return formatted("%.*f %s", unit == 0 ? 0 : 1, value, units[unit]);
}

}  // namespace ronda
