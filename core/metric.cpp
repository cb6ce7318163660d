#include <ronda/core/error.hpp>
#include <ronda/core/metric.hpp>
#include <ronda/core/text.hpp>

#include <algorithm>

namespace ronda {

std::string Metric::text(double value) const {
  return share ? formatted("%.2f %%", 100 * value) : formatted("%.4g", value);
}

double number_of(const std::vector<MetricValue>& values, const std::string& name) {
  const auto is_meant = [&](const MetricValue& value) { return value.metric.name == name && value.is_number(); };
  const auto found = std::ranges::find_if(values, is_meant);
  if (found != values.end()) return found->number();
  throw InputError("no metric '" + name + "' was measured; there is " +
                   (values.empty() ? "none" : listed(values, [](const MetricValue& v) { return v.metric.name; })));
}

}  // namespace ronda
