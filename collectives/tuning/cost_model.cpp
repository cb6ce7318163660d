#include <ronda/collectives/host/algorithms/direct_exchange.hpp>
#include <ronda/collectives/host/algorithms/folding.hpp>
#include <ronda/collectives/host/algorithms/grid_exchange.hpp>
#include <ronda/collectives/host/algorithms/ring.hpp>
#include <ronda/collectives/host/wire_format.hpp>
#include <ronda/collectives/tuning/cost_model.hpp>

#include <algorithm>
#include <cmath>

namespace ronda {

CostModel::CostModel(const LinkCosts& costs, std::span<const std::vector<int>> ranks_of_node, bool uses_trials)
    : costs_(costs), uses_trials_(uses_trials), nodes_(static_cast<int>(ranks_of_node.size())) {
  for (const auto& ranks : ranks_of_node) ranks_ += static_cast<int>(ranks.size());
  node_of_.resize(static_cast<std::size_t>(ranks_));
  slices_ = ranks_;
  for (int node = 0; node < nodes_; ++node) {
    const auto& ranks = ranks_of_node[static_cast<std::size_t>(node)];
    for (const int rank : ranks) node_of_[static_cast<std::size_t>(rank)] = node;
    slices_ = std::min(slices_, static_cast<int>(ranks.size()));
  }
}

std::optional<double> CostModel::seconds(AllreduceAlgorithm algorithm, std::size_t bytes,
                                         Compression compression) const {
  if (ranks_ == 1 || bytes == 0) return 0;
  auto seconds = formula(algorithm, static_cast<double>(bytes), packed(compression));
  if (!seconds || !uses_trials_) return seconds;
  for (const Trial& trial : costs_.trials)
    if (trial.algorithm == algorithm && trial.compression == compression && trial.bytes == bytes)
      *seconds *= trial.factor;
  return seconds;
}

std::size_t CostModel::trial_bytes(std::size_t bytes) const {
  constexpr double too_long = 0.06;
  constexpr std::size_t too_much = std::size_t{4} << 20;  // memory: it is taken once more for the trial
  std::size_t size = 1;
  while (size <= bytes / 4 && size < too_much) size *= 4;
  const auto takes = [&](std::size_t some) {
    return formula(AllreduceAlgorithm::ring, static_cast<double>(some), {}).value_or(0);
  };
  while (size > 1 && takes(size) > too_long) size /= 4;
  return size;
}

// ---- the formulas ---------------------------------------------------------------------------------------------------

CostModel::Packed CostModel::packed(Compression compression) const {
  constexpr std::size_t many = 1 << 20;
  const double share = static_cast<double>(wire_bytes(compression, many)) / (many * sizeof(float));
  switch (compression) {
    case Compression::bf16: return {compression, share, costs_.pack_seconds[0]};
    case Compression::fp16: return {compression, share, costs_.pack_seconds[1]};
    case Compression::int8: return {compression, share, costs_.pack_seconds[2]};
    case Compression::none:
    case Compression::automatic: break;
  }
  return {};
}

std::optional<double> CostModel::formula(AllreduceAlgorithm algorithm, double bytes, const Packed& packed) const {
  const auto around = [&] { return way([&](int rank) { return (rank + 1) % ranks_; }); };
  switch (algorithm) {
    case AllreduceAlgorithm::doubling: return doubling(bytes, packed);
    case AllreduceAlgorithm::halving: return halving(bytes, packed);
    case AllreduceAlgorithm::ring: return ring(ranks_, around(), bytes, packed);
    case AllreduceAlgorithm::hierarchical: return hierarchical(bytes, packed);
    case AllreduceAlgorithm::node:
      if (nodes_ == 1 && !costs_.window.empty()) return costs_.window(bytes);
      break;
    case AllreduceAlgorithm::mpi:
    case AllreduceAlgorithm::nccl:
    case AllreduceAlgorithm::staged:
    case AllreduceAlgorithm::automatic: break;
  }
  return std::nullopt;
}

double CostModel::exchange(Way way, double bytes, const Packed& packed) const {
  return cost(&MessageCosts::exchange, way, packed.share * bytes) + packed.seconds * bytes;
}

/// One of two ranks has both's data afterwards; in the end it hands the result back.
std::optional<double> CostModel::folded(double bytes, const Packed& packed) const {
  const int beyond = ranks_ - Folding(0, ranks_).power();
  if (beyond == 0) return 0;
  const Way to_neighbour = way([&](int rank) { return rank < 2 * beyond ? rank ^ 1 : rank; });
  if (!known(to_neighbour)) return std::nullopt;
  return 2 * exchange(to_neighbour, bytes, packed) + costs_.combine_seconds * bytes;
}

std::optional<double> CostModel::doubling(double bytes, const Packed& packed) const {
  std::optional<double> total = folded(bytes, packed);
  const Folding folding(0, ranks_);
  for (int distance = 1; total && distance < folding.power(); distance *= 2) {
    const Way step = way_of_exchange(distance);
    if (!known(step)) return std::nullopt;
    *total += exchange(step, bytes, packed) + costs_.combine_seconds * bytes;
  }
  return total;
}

std::optional<double> CostModel::halving(double bytes, const Packed& packed) const {
  std::optional<double> total = folded(bytes, packed);
  const Folding folding(0, ranks_);
  double part = bytes / 2;
  for (int distance = folding.power() / 2; total && distance > 0; distance /= 2, part /= 2) {
    const Way step = way_of_exchange(distance);
    if (!known(step)) return std::nullopt;
    *total += 2 * exchange(step, part, packed) + costs_.combine_seconds * part;
  }
  return total;
}

std::optional<double> CostModel::ring(int ranks, Way way, double bytes, const Packed& packed) const {
  if (ranks == 1) return 0;
  if (!known(way)) return std::nullopt;
  const int columns = packed.compression == Compression::int8 ? GridExchange::columns_for(ranks) : 1;
  if (columns > 1) {  // a row adds up and hands out what its columns make sums over the rows
    const auto in_row = ring(columns, way, bytes, packed),
               in_column = ring(ranks / columns, way, bytes / columns, packed);
    return *in_row + *in_column;
  }
  const double chunk = bytes / ranks, sent = packed.share * chunk;
  const std::size_t count = Ring::segments_of(static_cast<std::size_t>(std::ceil(sent)), short_message_bytes);
  const auto segments = static_cast<double>(count);
  const double of_the_link = segments * cost(&MessageCosts::flow, way, sent / segments);
  const double latency = cost(&MessageCosts::exchange, way, sent / segments);
  const double computing = (ranks - 1) * chunk * (costs_.combine_seconds + 2 * packed.seconds);
  if (packed.compression == Compression::int8) {
    constexpr auto depth = static_cast<double>(DirectExchange::depth);
    return std::max(2 * (ranks - 1) * of_the_link, (2 + (segments - 1) / depth) * latency) + computing;
  }
  const double rounds = segments / static_cast<double>(std::min(count, Ring::most_lanes));
  return 2 * (ranks - 1) * std::max(of_the_link, rounds * latency) + computing;
}

std::optional<double> CostModel::hierarchical(double bytes, const Packed& packed) const {
  const auto across = ring(nodes_, Way{slices_}, bytes / slices_, packed);
  if (!across || costs_.window.empty()) return std::nullopt;
  return costs_.window(bytes) + *across;
}

// ---- what a step's messages cost ------------------------------------------------------------------------------------

template <class PartnerOf>
CostModel::Way CostModel::way(PartnerOf partner_of) const {
  std::vector<int> leaving(static_cast<std::size_t>(nodes_));
  for (int rank = 0; rank < ranks_; ++rank) {
    const int node = node_of_[static_cast<std::size_t>(rank)];
    if (node_of_[static_cast<std::size_t>(partner_of(rank))] != node) ++leaving[static_cast<std::size_t>(node)];
  }
  return {std::ranges::max(leaving)};
}

CostModel::Way CostModel::way_of_exchange(int distance) const {
  return way([&](int rank) {
    const Folding folding(rank, ranks_);
    return folding.hands_over() ? rank : folding.rank_of(folding.member() ^ distance);
  });
}

bool CostModel::known(Way way) const noexcept { return !(way.streams == 0 ? costs_.node : costs_.network).empty(); }

double CostModel::cost(CostCurve MessageCosts::*curve, Way way, double bytes) const noexcept {
  if (way.streams == 0) return (costs_.node.*curve)(bytes);
  const double alone = (costs_.network.*curve)(bytes);
  if (way.streams == 1 || costs_.crowded_network.empty()) return alone;
  const double crowded = (costs_.crowded_network.*curve)(bytes);
  return std::max(alone, alone + (crowded - alone) * (way.streams - 1) / (costs_.streams - 1));
}

}  // namespace ronda
