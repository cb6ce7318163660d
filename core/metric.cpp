#include <ronda/core/error.hpp>
#include <ronda/core/listed.hpp>
#include <ronda/core/metric.hpp>

#include <algorithm>
#include <array>
#include <cstdio>

namespace ronda {

std::string Metric::text(double value) const {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), share ? "%.2f %%" : "%.4g", share ? 100 * value : value);
  return text.data();
}

double number_of(const std::vector<MetricValue>& values, const std::string& name) {
  const auto is_meant = [&](const MetricValue& value) { return value.metric.name == name && value.is_number(); };
  const auto found = std::ranges::find_if(values, is_meant);
  if (found != values.end()) return found->number();
  throw InputError("no metric '" + name + "' was measured; there is " +
                   (values.empty() ? "none" : listed(values, [](const MetricValue& v) { return v.metric.name; })));
}

}  // namespace ronda
