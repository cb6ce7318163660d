#include <ronda/collectives/host/algorithms/allreduce/direct.hpp>
#include <ronda/collectives/host/algorithms/allreduce_row.hpp>
#include <ronda/collectives/host/algorithms/direct_exchange.hpp>
#include <ronda/collectives/host/algorithms/grid_exchange.hpp>

namespace ronda {

std::unique_ptr<Algorithm> make_direct(std::unique_ptr<Transport> transport, Elements data, const Reduction& reduction,
                                       const Wire& wire) {
  if (const int columns = GridExchange::columns_for(transport->size()); columns > 1)
    return std::make_unique<GridExchange>(std::move(transport), data, reduction, wire, columns);
  return std::make_unique<DirectExchange>(std::move(transport), data, reduction, wire);
}

int direct_roundings(int ranks) { return GridExchange::columns_for(ranks) > 1 ? 4 : 2; }

// ---- the row --------------------------------------------------------------------------------------------------------

namespace {

std::optional<double> direct_seconds(const MessageTimes& times, double bytes, const MessageTimes::Packed& packed) {
  return times.direct(times.ranks(), times.way_to_all(), bytes, packed);
}

std::unique_ptr<Algorithm> make_direct_of_all(const AllreduceParts& parts) {
  return make_direct(parts.across_all(), parts.elements, parts.reduction, parts.wire);
}

/// `auto` does not need it between two ranks, nor with error feedback: `ring` is the same there.
bool suits_direct(const AllreduceTask& task, const Topology& topology) {
  const bool more_than_two = topology.nodes > 2 || topology.most_ranks_on_a_node > (topology.nodes == 1 ? 2 : 1);
  return more_than_two && !keeps_lost(task.compression);
}

}  // namespace

extern const AllreduceRow direct_row;
constinit const AllreduceRow direct_row{.algorithm = AllreduceAlgorithm::first_other,
                                        .name = "direct",
                                        .help =
                                            "each rank reduces a part and sends it to all, over messages: for a "
                                            "few hosts far apart, and other numbers than powers of two",
                                        .roundings = direct_roundings,
                                        .suits = suits_direct,
                                        .cost = direct_seconds,
                                        .make = make_direct_of_all};

}  // namespace ronda
