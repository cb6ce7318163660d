#include <ronda/collectives/host/node/two_shot.hpp>
#include <ronda/collectives/host/planning/calibration.hpp>
#include <ronda/collectives/host/wire_format.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace ronda {
namespace {

/// Between 32 and 64 KiB many an MPI begins to ask the receiver before it sends: longer messages cost a round trip
/// more.
constexpr std::array<std::size_t, 6> message_sizes{8, 4 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20};
constexpr std::array<std::size_t, 3> flow_sizes{8, 4 << 10, short_message_bytes};
constexpr std::array<std::size_t, 4> window_sizes{512, 32 << 10, 256 << 10, 1 << 20};

/// What a size may take; and where a single repetition would take more than the second, it is left out, and so are
/// longer ones: they are on the line that is known by then.
constexpr double measuring_seconds = 0.01, too_many_seconds = 0.1;
constexpr int fewest = 3, most = 60;

/// Enough repetitions for the next size, by what the last one took, or 0.
int repetitions(double last_seconds, std::size_t last_bytes, std::size_t bytes) {
  if (last_bytes == 0) return fewest;
  const double growth = static_cast<double>(bytes) / static_cast<double>(last_bytes);
  const double expected = last_seconds * std::clamp(growth, 1.0, 4.0);
  if (expected > too_many_seconds) return 0;
  return std::clamp(static_cast<int>(measuring_seconds / std::max(expected, 1e-9)), fewest, most);
}

}  // namespace

LinkCosts Calibration::measure() {
  LinkCosts costs;
  const Topology& topology = members_.topology();
  const bool several_nodes = topology.nodes > 1;
  costs.combine_seconds = measure_combining();
  costs.pack_seconds = measure_packing();
  if (topology.most_ranks_on_a_node > 1) {
    costs.node = measure_messages(members_.ranks_on_this_node());
    costs.window = measure_window();
  }
  if (several_nodes) costs.network = measure_messages(links_.owners_of_slice(0));
  costs.streams = topology.fewest_ranks_on_a_node;
  if (several_nodes && costs.streams > 1)
    costs.crowded_network = measure_messages(links_.owners_of_slice(topology.rank_on_node));
  return LinkCosts::parse(costs.text());  // what is kept and read again has as many digits
}

/// @param members  of this rank's messages; others rest, in a run of their own, so that all count the same runs
MessageCosts Calibration::measure_messages(const std::vector<int>& members) {
  MessageCosts costs;
  for (const auto pattern : {LinkProbe::Pattern::exchange, LinkProbe::Pattern::flow}) {
    const bool flows = pattern == LinkProbe::Pattern::flow;
    const std::span<const std::size_t> sizes = flows ? std::span<const std::size_t>(flow_sizes) : message_sizes;
    const double under_way = flows ? static_cast<double>(Ring::most_lanes) : 1;
    const bool takes_part = std::ranges::find(members, members_.rank()) != members.end();
    auto owned = std::make_unique<LinkProbe>(links_.across(takes_part ? members : std::vector<int>{members_.rank()}),
                                             pattern, sizes.back(), [this] { return now(); });
    LinkProbe& probe = *owned;
    const auto run = links_.planned(std::move(owned), "probe", {Kind::mpi, "the measuring of the links"});
    std::vector<CostCurve::Point> points;
    double seconds = 0;
    std::size_t last = 0;
    for (const std::size_t bytes : sizes) {
      const int times = repetitions(seconds * under_way, last, bytes);
      if (times == 0) break;
      probe.set(bytes, bytes == sizes.back() ? 3 : 1, times);
      run->start().wait();
      seconds = agreed(takes_part ? members[0] : -1, probe.seconds())[0];
      points.push_back({static_cast<double>(bytes), seconds});
      last = bytes;
    }
    (flows ? costs.flow : costs.exchange) = CostCurve(std::move(points));
  }
  return costs;
}

/// Empty where the nodes have no room for shared memory.
CostCurve Calibration::measure_window() {
  std::string refusal;
  const Topology& topology = members_.topology();
  const NodeMemory::Site site{memory_.take(window_sizes.back(), kept_for_mpi, refusal),
                              std::vector<std::uint64_t>(static_cast<std::size_t>(topology.ranks_on_node))};
  if (site.memory == nullptr) return {};
  const auto barriers = memory_.take_barriers(1, refusal);
  if (barriers == nullptr) return {};
  std::vector<CostCurve::Point> points;
  double seconds = 0;
  std::size_t last = 0;
  for (const std::size_t bytes : window_sizes) {
    const Elements data{site.memory->segment(topology.rank_on_node).data(), bytes / sizeof(float), DType::float32};
    const auto run = links_.planned(std::make_unique<TwoShot>(memory_.copies_of(data, site, barriers, 0), Reduction{}),
                                    "node", {Kind::allreduce, "the measuring of the node's memory"});
    run->start().wait();
    const int times = std::max(fewest, repetitions(seconds, last, bytes));
    const double begin = now();
    for (int i = 0; i < times; ++i) run->start().wait();
    seconds = slowest((now() - begin) / times);
    points.push_back({static_cast<double>(bytes), seconds});
    last = bytes;
  }
  return CostCurve(std::move(points));
}

/// By a segment that comes and one that is there, on all ranks at once.
double Calibration::measure_combining() {
  constexpr std::size_t count = (256 << 10) / sizeof(float);
  const Buffer mine = Buffer::host(count * sizeof(float)), other = Buffer::host(count * sizeof(float));
  double best = 0;
  for (int i = 0; i < fewest; ++i) {
    const double begin = now();
    combine(ReduceOp::sum, {mine.data(), count, DType::float32}, other.data());
    const double seconds = now() - begin;
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return slowest(best) / static_cast<double>(count * sizeof(float));
}

/// By a segment that is there, on all ranks at once.
std::array<double, 3> Calibration::measure_packing() {
  constexpr std::size_t count = (256 << 10) / sizeof(float);
  std::vector<float> values(count), lost(count);
  std::vector<std::byte> wire(wire_bytes(Compression::bf16, count));
  std::array<double, 3> packing{};
  constexpr std::array compressions{Compression::bf16, Compression::fp16, Compression::int8};
  for (std::size_t i = 0; i < compressions.size(); ++i) {
    double best = std::numeric_limits<double>::infinity();
    for (int repetition = 0; repetition < fewest; ++repetition) {
      const double begin = now();
      encode(compressions[i], values, keeps_lost(compressions[i]) ? lost.data() : nullptr, Noise(), wire.data());
      decode(compressions[i], wire.data(), values);
      best = std::min(best, now() - begin);
    }
    packing[i] = slowest(best) / static_cast<double>(count * sizeof(float));
  }
  return packing;
}

LinkProbe::Seconds Calibration::agreed(int ring, const LinkProbe::Seconds& mine) {
  struct Report {
    int ring;
    LinkProbe::Seconds seconds;
  };
  const auto all = agreement_.together("measuring what messages cost", [&] {
    return members_.all().gather(Report{ring, mine});
  });
  LinkProbe::Seconds agreed{};
  for (std::size_t group = 0; group < mine.size(); ++group) {
    // A rank that begins late finds its messages there, and its partner waits for it, again and again: only over all of
    // them does the mean tell what a message takes.
    std::map<int, std::pair<double, int>> sums;
    for (const Report& report : all) {
      if (report.seconds[group] <= 0) continue;
      sums[report.ring].first += report.seconds[group];
      ++sums[report.ring].second;
    }
    for (const auto& [of, sum] : sums) agreed[group] = std::max(agreed[group], sum.first / sum.second);
  }
  std::ranges::sort(agreed);
  return agreed;
}

double Calibration::slowest(double mine) {
  return std::ranges::max(
      agreement_.together("measuring what messages cost", [&] { return members_.all().gather(mine); }));
}

}  // namespace ronda
