#include <ronda/collectives/host/algorithms/direct_exchange.hpp>
#include <ronda/collectives/host/algorithms/folding.hpp>
#include <ronda/collectives/host/algorithms/grid_exchange.hpp>
#include <ronda/collectives/host/algorithms/message_times.hpp>
#include <ronda/collectives/host/algorithms/ring.hpp>
#include <ronda/collectives/host/wire_format.hpp>

#include <algorithm>
#include <cmath>

namespace ronda {

MessageTimes::MessageTimes(const LinkCosts& costs, std::span<const std::vector<int>> ranks_of_node)
    : costs_(costs), nodes_(static_cast<int>(ranks_of_node.size())) {
  for (const auto& ranks : ranks_of_node) ranks_ += static_cast<int>(ranks.size());
  node_of_.resize(static_cast<std::size_t>(ranks_));
  slices_ = ranks_;
  for (int node = 0; node < nodes_; ++node) {
    const auto& ranks = ranks_of_node[static_cast<std::size_t>(node)];
    for (const int rank : ranks) node_of_[static_cast<std::size_t>(rank)] = node;
    slices_ = std::min(slices_, static_cast<int>(ranks.size()));
  }
}

MessageTimes::Packed MessageTimes::packed(Compression compression) const {
  constexpr std::size_t many = 1 << 20;
  const double share = static_cast<double>(wire_bytes(compression, many)) / (many * sizeof(float));
  switch (compression) {
    case Compression::bf16: return {compression, share, costs_.pack_seconds[0]};
    case Compression::fp16: return {compression, share, costs_.pack_seconds[1]};
    case Compression::int8:
    case Compression::int4:
    case Compression::two_bit: return {compression, share, costs_.pack_seconds[2]};
    case Compression::none:
    case Compression::automatic: break;
  }
  return {};
}

// ---- steps ----------------------------------------------------------------------------------------------------------

MessageTimes::Way MessageTimes::way_of_exchange(int distance) const {
  return way([&](int rank) {
    const Folding folding(rank, ranks_);
    return folding.hands_over() ? rank : folding.rank_of(folding.member() ^ distance);
  });
}

MessageTimes::Way MessageTimes::way_to_all() const {
  std::vector<int> ranks_on(static_cast<std::size_t>(nodes_));
  for (const int node : node_of_) ++ranks_on[static_cast<std::size_t>(node)];
  return {nodes_ == 1 ? 0 : std::ranges::max(ranks_on)};
}

bool MessageTimes::known(Way way) const noexcept { return !(way.streams == 0 ? costs_.node : costs_.network).empty(); }

double MessageTimes::cost(CostCurve MessageCosts::*curve, Way way, double bytes) const noexcept {
  if (way.streams == 0) return (costs_.node.*curve)(bytes);
  const double alone = (costs_.network.*curve)(bytes);
  if (way.streams == 1 || costs_.crowded_network.empty()) return alone;
  const double crowded = (costs_.crowded_network.*curve)(bytes);
  return std::max(alone, alone + (crowded - alone) * (way.streams - 1) / (costs_.streams - 1));
}

double MessageTimes::exchange(Way way, double bytes, const Packed& packed) const {
  return cost(&MessageCosts::exchange, way, packed.share * bytes) + packed.seconds * bytes;
}

// ---- what several algorithms have in common -------------------------------------------------------------------------

std::optional<double> MessageTimes::window(double bytes) const {
  return costs_.window.empty() ? std::nullopt : std::optional(costs_.window(bytes));
}

std::optional<double> MessageTimes::folded(double bytes, const Packed& packed) const {
  const int beyond = ranks_ - Folding(0, ranks_).power();
  if (beyond == 0) return 0;
  const Way to_neighbour = way([&](int rank) { return rank < 2 * beyond ? rank ^ 1 : rank; });
  if (!known(to_neighbour)) return std::nullopt;
  return 2 * exchange(to_neighbour, bytes, packed) + combining(bytes);
}

std::optional<double> MessageTimes::ring(int ranks, Way way, double bytes, const Packed& packed) const {
  if (keeps_lost(packed.compression)) return direct(ranks, way, bytes, packed);
  if (ranks == 1) return 0;
  if (!known(way)) return std::nullopt;
  const Messages chunk = messages_of(ranks, way, bytes, packed);
  const double rounds = chunk.segments / std::min(chunk.segments, static_cast<double>(Ring::most_lanes));
  return 2 * (ranks - 1) * std::max(chunk.of_the_link, rounds * chunk.latency) + chunk.computing;
}

std::optional<double> MessageTimes::direct(int ranks, Way way, double bytes, const Packed& packed) const {
  if (ranks == 1) return 0;
  if (!known(way)) return std::nullopt;
  if (const int columns = GridExchange::columns_for(ranks); columns > 1) {
    // A row adds up and hands out what its columns make sums over the rows.
    const auto in_row = direct(columns, way, bytes, packed),
               in_column = direct(ranks / columns, way, bytes / columns, packed);
    return *in_row + *in_column;
  }
  constexpr auto depth = static_cast<double>(DirectExchange::depth);
  const Messages chunk = messages_of(ranks, way, bytes, packed);
  const double others = ranks - 1, message = chunk.of_the_link / chunk.segments;
  return std::max(2 * (chunk.latency + others * chunk.of_the_link - message),
                  (2 + (chunk.segments - 1) / depth) * chunk.latency) +
         chunk.computing;
}

MessageTimes::Messages MessageTimes::messages_of(int ranks, Way way, double bytes, const Packed& packed) const {
  const double chunk = bytes / ranks, sent = packed.share * chunk;
  const auto segments =
      static_cast<double>(Ring::segments_of(static_cast<std::size_t>(std::ceil(sent)), short_message_bytes));
  return {.segments = segments,
          .of_the_link = segments * cost(&MessageCosts::flow, way, sent / segments),
          .latency = cost(&MessageCosts::exchange, way, sent / segments),
          .computing = (ranks - 1) * chunk * (costs_.combine_seconds + 2 * packed.seconds)};
}

}  // namespace ronda
