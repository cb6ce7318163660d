#include <ronda/collectives/host/algorithms/ring.hpp>
#include <ronda/collectives/link_costs.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace ronda {
namespace {

/// What the numbers mean: another version, or a ring with another number of messages under way, has
/// other ones.
std::string head() { return "links 2 lanes " + std::to_string(Ring::most_lanes); }

template <class Costs>
auto curves_of(Costs& costs) {
  return std::array<std::pair<std::string_view, decltype(&costs.window)>, 7>{{
      {"node-exchange", &costs.node.exchange},
      {"node-flow", &costs.node.flow},
      {"network-exchange", &costs.network.exchange},
      {"network-flow", &costs.network.flow},
      {"crowded-exchange", &costs.crowded_network.exchange},
      {"crowded-flow", &costs.crowded_network.flow},
      {"window", &costs.window},
  }};
}

/// Far beyond anything measured, and small enough for all that is computed with it.
constexpr double largest_cost = 1e15;
constexpr int most_streams = 1 << 20;

bool sensible(double number) { return number >= 0 && number <= largest_cost; }

/// `bytes=seconds`, separated by commas.
CostCurve parse_curve(const std::string& text) {
  std::vector<CostCurve::Point> points;
  TextReader in(text);
  char equals = 0, comma = 0;
  do {
    CostCurve::Point point;
    const bool ascends = in >> point.bytes >> equals >> point.seconds && equals == '=' && sensible(point.seconds) &&
                         sensible(point.bytes) && (points.empty() || point.bytes > points.back().bytes);
    if (!ascends) throw InputError("'" + text + "' is no curve of ascending bytes=seconds");
    points.push_back(point);
  } while (in >> comma && comma == ',');
  if (!in.eof()) throw InputError("'" + text + "' is no curve of ascending bytes=seconds");
  return CostCurve(std::move(points));
}

/// `seconds`, separated by commas.
std::array<double, 3> parse_packing(const std::string& text) {
  std::array<double, 3> seconds{};
  TextReader in(text);
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    char comma = ',';
    if ((i > 0 && !(in >> comma)) || comma != ',' || !(in >> seconds[i]) || !sensible(seconds[i]))
      throw InputError("'" + text + "' is not what packing costs");
  }
  if (in.peek() != TextReader::traits_type::eof()) throw InputError("'" + text + "' is not what packing costs");
  return seconds;
}

/// `algorithm,compression,bytes,factor`.
Trial parse_trial(const std::string& text) {
  Trial trial;
  char comma = 0;
  TextReader in(text);
  std::string name;
  std::getline(in, name, ',');
  trial.algorithm = parse_allreduce(name);
  std::getline(in, name, ',');
  trial.compression = parse_compression(name);
  if (!(in >> trial.bytes >> comma >> trial.factor) || comma != ',' || !in.eof() || !sensible(trial.factor) ||
      !sensible(static_cast<double>(trial.bytes)))
    throw InputError("'" + text + "' is no trial of an allreduce");
  return trial;
}

}  // namespace

CostCurve::CostCurve(std::vector<Point> points) : points_(std::move(points)) {
  for (std::size_t i = points_.size(); i-- > 1;)
    points_[i - 1].seconds = std::min(points_[i - 1].seconds, points_[i].seconds);
}

double CostCurve::operator()(double bytes) const noexcept {
  if (points_.size() == 1) return points_[0].seconds;
  const auto beyond = std::upper_bound(points_.begin(), points_.end(), bytes,
                                       [](double wanted, const Point& point) { return wanted < point.bytes; });
  const auto right = std::clamp(beyond, points_.begin() + 1, points_.end() - 1);
  const Point& a = *(right - 1);
  const Point& b = *right;
  return a.seconds + (std::max(bytes, points_[0].bytes) - a.bytes) * (b.seconds - a.seconds) / (b.bytes - a.bytes);
}

std::string LinkCosts::text() const {
  TextWriter out;
  out << head() << " streams " << streams << " combine " << combine_seconds << " pack " << pack_seconds[0] << ','
      << pack_seconds[1] << ',' << pack_seconds[2];
  for (const auto& [name, curve] : curves_of(*this)) {
    if (curve->empty()) continue;
    out << ' ' << name << ' ';
    const char* separator = "";
    for (const auto& point : curve->points())
      out << std::exchange(separator, ",") << static_cast<long long>(point.bytes) << '=' << point.seconds;
  }
  for (const Trial& trial : trials)
    out << " trial " << name_of(trial.algorithm) << ',' << name_of(trial.compression) << ',' << trial.bytes << ','
        << trial.factor;
  return out.str();
}

LinkCosts LinkCosts::parse(std::string_view text) {
  if (!text.starts_with(head() + " "))
    throw InputError("link costs begin '" + head() + "', not '" + std::string(text.substr(0, 40)) + "'");
  LinkCosts costs;
  TextReader in(std::string(text.substr(head().size())));
  std::string name, value;
  while (in >> name) {
    if (!(in >> value)) throw InputError("link costs end after '" + name + "'");
    TextReader number(value);
    const auto curves = curves_of(costs);
    const auto curve = std::ranges::find(curves, name, &decltype(curves)::value_type::first);
    if (curve != curves.end())
      *curve->second = parse_curve(value);
    else if (name == "trial")
      costs.trials.push_back(parse_trial(value));
    else if (name == "pack")
      costs.pack_seconds = parse_packing(value);
    else if (name == "streams"
                 ? !(number >> costs.streams) || costs.streams < 1 || costs.streams > most_streams
                 : name != "combine" || !(number >> costs.combine_seconds) || !sensible(costs.combine_seconds))
      throw InputError("link costs have no '" + name + " " + value + "'");
  }
  for (const MessageCosts* level : {&costs.node, &costs.network, &costs.crowded_network})
    if (level->exchange.empty() != level->flow.empty()) throw InputError("link costs have half a level");
  if (!costs.crowded_network.empty() && costs.streams < 2) throw InputError("link costs have a crowd of one");
  return costs;
}

}  // namespace ronda
