#include <ronda/core/error.hpp>
#include <ronda/layers/summed_metric.hpp>

#include <algorithm>
#include <set>

namespace ronda {
namespace {

bool is_word(const std::string& name) {
  const auto may_be_in_one = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '@';
  };
  return !name.empty() && std::ranges::all_of(name, may_be_in_one);
}

}  // namespace

std::vector<std::string> checked_names(const Metrics& metrics, const Shape& outputs, const Metric& of_loss) {
  std::set<std::string> taken{"loss", of_loss.name};
  std::vector<std::string> names;
  for (const SummedMetric* metric : metrics)
    for (const MetricValue& value : metric->values(std::vector<double>(metric->sums(outputs)))) {
      const std::string& name = value.metric.name;
      if (!is_word(name)) throw InputError("a metric is called '" + name + "'; a name is letters, digits and _ - . @");
      if (!taken.insert(name).second)
        throw InputError("two metrics are called " + name +
                         (name == of_loss.name ? ", one of them the loss's own" : "") + "; leave one out");
      names.push_back(name);
    }
  return names;
}

}  // namespace ronda
