// How a group measures what its messages cost. All ranks do so at once, size by size, and agree on each before they go
// on to the next.
#include <ronda/collectives/group/group.hpp>
#include <ronda/collectives/host/algorithms/link_probe.hpp>
#include <ronda/collectives/host/node/two_shot.hpp>

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
constexpr double enough_seconds = 0.01, too_many_seconds = 0.1;
constexpr int fewest = 3, most = 60;

/// Enough repetitions for the next size, by what the last one took, or 0.
int repetitions(double last_seconds, std::size_t last_bytes, std::size_t bytes) {
  if (last_bytes == 0) return fewest;
  const double growth = static_cast<double>(bytes) / static_cast<double>(last_bytes);
  const double expected = last_seconds * std::clamp(growth, 1.0, 4.0);
  if (expected > too_many_seconds) return 0;
  return std::clamp(static_cast<int>(enough_seconds / std::max(expected, 1e-9)), fewest, most);
}

}  // namespace

const LinkCosts& Communicator::Group::link_costs() {
  if (costs_) return *costs_;
  LinkCosts costs;
  const bool shares_nodes = topology().most_ranks_on_a_node > 1, several_nodes = topology().nodes > 1;
  costs.combine_seconds = measure_combining();
  costs.pack_seconds = measure_packing();
  if (shares_nodes) {
    costs.node = measure_messages(placement_.ranks_of_node[static_cast<std::size_t>(topology().node)]);
    costs.window = measure_window();
  }
  if (several_nodes) costs.network = measure_messages(owners_of_slice(0));
  costs.streams = topology().fewest_ranks_on_a_node;
  if (several_nodes && costs.streams > 1)
    costs.crowded_network = measure_messages(owners_of_slice(topology().rank_on_node));
  costs_ = LinkCosts::parse(costs.text());  // what is kept and read again has as many digits
  return *costs_;
}

/// Tries what the model expects to be nearly equal, on memory of its own, until the best is one that was tried or has
/// no rival. The trials are this size's own, so the choice stays the same whatever is asked for before or after; with
/// trials that are known beforehand, as from a plan's file, it comes to the same.
void Communicator::Group::rehearse(const AllreduceTask& task) {
  constexpr double near = 1.4;
  const CostModel model(*costs_, placement_.ranks_of_node);  // sees the trials below
  const std::size_t bytes = model.trial_bytes(task.bytes);
  const auto tried = [&](const AllreduceChoice& choice) {
    return std::ranges::any_of(costs_->trials, [&](const Trial& trial) {
      return trial.algorithm == choice.algorithm && trial.compression == choice.compression &&
             trial.bytes == task.bytes;
    });
  };
  const auto measured_for_another = [&](const AllreduceChoice& choice) {
    return std::ranges::find_if(costs_->trials, [&](const Trial& trial) {
      return trial.algorithm == choice.algorithm && trial.compression == choice.compression &&
             model.trial_bytes(trial.bytes) == bytes;
    });
  };
  Buffer memory;
  for (;;) {
    auto rivals = possible_choices(task, topology(), model);
    std::erase_if(rivals, [](const AllreduceChoice& choice) { return !choice.seconds; });
    if (rivals.empty()) return;
    const double best = *std::ranges::min_element(rivals, {}, &AllreduceChoice::seconds)->seconds;
    std::erase_if(rivals, [&](const AllreduceChoice& choice) { return *choice.seconds > near * best; });
    const auto next = std::ranges::find_if_not(rivals, tried);
    if (rivals.size() == 1 || next == rivals.end()) return;
    Trial trial{next->algorithm, next->compression, task.bytes, 1};
    if (const auto known = measured_for_another(*next); known != costs_->trials.end()) {
      trial.factor = known->factor;
    } else {
      if (memory.bytes() == 0) memory = allocate(bytes, task.node_shared ? Memory::node_shared : Memory::per_rank);
      trial.factor = try_out(*next, memory);
    }
    costs_->trials.push_back(trial);
    costs_ = LinkCosts::parse(costs_->text());
  }
}

/// How many times as long as its formula has it an allreduce takes.
double Communicator::Group::try_out(const AllreduceChoice& choice, const Buffer& memory) {
  const std::span data(reinterpret_cast<float*>(memory.data()), memory.bytes() / sizeof(float));
  const bool shared = allocation_of({memory.data(), data.size(), DType::float32}) != nullptr;
  if (choice.algorithm == AllreduceAlgorithm::hierarchical && !shared) return 1;  // no room for a second one
  const auto run = plan(AllreduceSpec{{Tensor(data)}, ReduceOp::sum, choice.algorithm, "a trial", choice.compression});
  const double expected = run->times().predicted.value_or(0);
  const int times = std::clamp(static_cast<int>(enough_seconds / 2 / std::max(expected, 1e-9)), 1, most / 3);
  run->start().wait();
  LinkProbe::Seconds seconds{};
  for (double& group : seconds) {
    const double begin = mpi::seconds();
    for (int i = 0; i < times; ++i) run->start().wait();
    group = (mpi::seconds() - begin) / times;
  }
  // What disturbs an algorithm often, does so later too: not the best group counts.
  return expected > 0 ? agreed(0, seconds)[LinkProbe::groups / 2] / expected : 1;
}

/// @param members  of this rank's messages; others rest, in a run of their own, so that all count the same runs
MessageCosts Communicator::Group::measure_messages(const std::vector<int>& members) {
  MessageCosts costs;
  for (const auto pattern : {LinkProbe::Pattern::exchange, LinkProbe::Pattern::flow}) {
    const bool flows = pattern == LinkProbe::Pattern::flow;
    const std::span<const std::size_t> sizes = flows ? std::span<const std::size_t>(flow_sizes) : message_sizes;
    const double under_way = flows ? static_cast<double>(Ring::most_lanes) : 1;
    Tag tag = next_tag();  // on all ranks, so that they go on alike
    const bool takes_part = std::ranges::find(members, rank_) != members.end();
    auto owned = std::make_unique<LinkProbe>(
        across(std::make_shared<const std::vector<int>>(takes_part ? members : std::vector<int>{rank_}),
               std::move(tag)),
        pattern, sizes.back(), mpi::seconds);
    LinkProbe& probe = *owned;
    const auto run = planned(std::move(owned), "probe", {Kind::mpi, "the measuring of the links"});
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
CostCurve Communicator::Group::measure_window() {
  std::string refusal;
  Site site{share_memory(window_sizes.back(), kept_for_mpi, refusal),
            std::vector<std::uint64_t>(static_cast<std::size_t>(topology().ranks_on_node))};
  if (site.memory == nullptr) return {};
  const auto shared_meetings = meetings(1, refusal);
  if (shared_meetings == nullptr) return {};
  std::vector<CostCurve::Point> points;
  double seconds = 0;
  std::size_t last = 0;
  for (const std::size_t bytes : window_sizes) {
    const Elements data{site.memory->segment(topology().rank_on_node).data(), bytes / sizeof(float), DType::float32};
    const auto run = planned(std::make_unique<TwoShot>(copies_of(data, site, shared_meetings, 0), Reduction{}), "node",
                             {Kind::allreduce, "the measuring of the node's memory"});
    run->start().wait();
    const int times = std::max(fewest, repetitions(seconds, last, bytes));
    const double begin = mpi::seconds();
    for (int i = 0; i < times; ++i) run->start().wait();
    seconds = slowest((mpi::seconds() - begin) / times);
    points.push_back({static_cast<double>(bytes), seconds});
    last = bytes;
  }
  return CostCurve(std::move(points));
}

/// By a segment that comes and one that is there, on all ranks at once.
double Communicator::Group::measure_combining() {
  constexpr std::size_t count = (256 << 10) / sizeof(float);
  const Buffer mine = Buffer::host(count * sizeof(float)), other = Buffer::host(count * sizeof(float));
  double best = 0;
  for (int i = 0; i < fewest; ++i) {
    const double begin = mpi::seconds();
    combine(ReduceOp::sum, {mine.data(), count, DType::float32}, other.data());
    const double seconds = mpi::seconds() - begin;
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return slowest(best) / static_cast<double>(count * sizeof(float));
}

/// By a segment that is there, on all ranks at once.
std::array<double, 3> Communicator::Group::measure_packing() {
  constexpr std::size_t count = (256 << 10) / sizeof(float);
  std::vector<float> values(count), lost(count);
  std::vector<std::byte> wire(wire_bytes(Compression::bf16, count));
  std::array<double, 3> packing{};
  constexpr std::array compressions{Compression::bf16, Compression::fp16, Compression::int8};
  for (std::size_t i = 0; i < compressions.size(); ++i) {
    double best = std::numeric_limits<double>::infinity();
    for (int repetition = 0; repetition < fewest; ++repetition) {
      const double begin = mpi::seconds();
      encode(compressions[i], values, compressions[i] == Compression::int8 ? lost.data() : nullptr, Noise(),
             wire.data());
      decode(compressions[i], wire.data(), values);
      best = std::min(best, mpi::seconds() - begin);
    }
    packing[i] = slowest(best) / static_cast<double>(count * sizeof(float));
  }
  return packing;
}

/// The groups of repetitions, from the one that was disturbed least, among the ranks that were slowest.
/// @param ring  of ranks that pass messages to each other: any number that only they have
LinkProbe::Seconds Communicator::Group::agreed(int ring, const LinkProbe::Seconds& mine) {
  struct Report {
    int ring;
    LinkProbe::Seconds seconds;
  };
  const auto all = together("measuring what messages cost", [&] {
    return communicator_.allgather(Report{ring, mine});
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

double Communicator::Group::slowest(double mine) {
  return std::ranges::max(together("measuring what messages cost", [&] { return communicator_.allgather(mine); }));
}

}  // namespace ronda
