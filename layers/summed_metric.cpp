#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/layers/summed_metric.hpp>

#include <algorithm>
#include <set>

namespace ronda {
namespace {

void require_word(const std::string& name) {
  const auto may_be_in_one = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '@';
  };
  if (name.empty() || !std::ranges::all_of(name, may_be_in_one))
    throw InputError("a metric is called '" + printable(name) + "'; a name is letters, digits and _ - . @");
}

}  // namespace

std::vector<std::string> checked_names(const Metrics& metrics, const Shape& outputs, const Metric& of_loss) {
  if (printable(of_loss.name) != of_loss.name || of_loss.name.find_first_of("\"\\") != std::string::npos)
    throw InputError("the loss's metric is called '" + printable(of_loss.name) +
                     "'; a name is UTF-8 without quotes, backslashes and control characters");
  std::set<std::string> taken{"loss", of_loss.name};
  std::vector<std::string> names;
  for (const SummedMetric* metric : metrics)
    for (const MetricValue& value : metric->values(std::vector<double>(metric->sums(outputs)))) {
      const std::string& name = value.metric.name;
      require_word(name);
      if (!taken.insert(name).second)
        throw InputError("two metrics are called " + name +
                         (name == of_loss.name ? ", one of them the loss's own" : "") + "; leave one out");
      names.push_back(name);
    }
  return names;
}

}  // namespace ronda
