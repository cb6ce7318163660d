#include <ronda/core/metric.hpp>

#include <array>
#include <cstdio>

namespace ronda {

std::string Metric::text(double value) const {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), share ? "%.2f %%" : "%.4g", share ? 100 * value : value);
  return text.data();
}

}  // namespace ronda
