#include <ronda/core/text.hpp>
#include <ronda/runtime/trainer/slow_ranks.hpp>

#include <algorithm>
#include <numeric>

namespace ronda {
namespace {

/// Of the time that all took; below, one rank or another comes last by chance.
constexpr double worth_naming = 0.02;

}  // namespace

std::string describe_waits(std::span<const double> waited, double seconds, const HostNames& hosts,
                           std::span<const int> ranks) {
  const auto [least, most] = std::minmax_element(waited.begin(), waited.end());
  const auto place = static_cast<std::size_t>(least - waited.begin());
  const std::size_t slow = ranks.empty() ? place : static_cast<std::size_t>(ranks[place]);
  const double others = waited.size() < 2 ? 0
                                          : (std::accumulate(waited.begin(), waited.end(), 0.0) - *least) /
                                                static_cast<double>(waited.size() - 1);
  const double lost = others - *least;
  if (lost <= worth_naming * seconds)
    return formatted("no rank kept the others waiting: reductions took each %.3f to %.3f s", *least, *most);
  return "the others waited for rank " + std::to_string(slow) + " on " + hosts[slow] +
         formatted(": %.3f s each (%.0f %% of the time), while it waited %.3f s itself", lost, 100 * lost / seconds,
                   *least);
}

}  // namespace ronda
