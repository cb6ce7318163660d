#include <ronda/collectives/host/algorithms/allreduce/direct.hpp>
#include <ronda/collectives/host/algorithms/allreduce/hierarchical.hpp>
#include <ronda/collectives/host/algorithms/allreduce/ring.hpp>
#include <ronda/collectives/host/algorithms/allreduce_row.hpp>

#include <cstring>

namespace ronda {

Hierarchical::Hierarchical(NodeCopies copies, const Reduction& reduction, int slices, std::unique_ptr<Transport> across,
                           const Wire& wire)
    : copies_(std::move(copies)),
      barrier_(copies_.lines, copies_.rank, copies_.ranks),
      in_node_(reduction.unfinished()) {
  if (across == nullptr) return;
  slice_ = copies_.part(static_cast<std::size_t>(copies_.rank), static_cast<std::size_t>(slices));
  copies_.touch(slice_);
  const Elements own{copies_.data[static_cast<std::size_t>(copies_.rank)], copies_.count, copies_.dtype};
  const Wire of_slice{wire.compression, wire.noise.at(static_cast<std::uint64_t>(copies_.rank))};
  across_ = make_ring(std::move(across), own.part(slice_), reduction, of_slice);
}

void Hierarchical::prepare() {
  Algorithm::prepare();
  if (across_) across_->prepare();
}

Task Hierarchical::run() {
  barrier_.arrive();
  co_await barrier_;
  if (across_) {
    std::byte* const own = copies_.data[static_cast<std::size_t>(copies_.rank)];
    reduce_copies(in_node_, copies_.data, copies_.dtype, slice_, {&own, 1});
    co_await across_->run();
    const std::size_t offset = slice_.begin * size_of(copies_.dtype), bytes = slice_.size() * size_of(copies_.dtype);
    for (std::byte* copy : copies_.data)
      if (copy != own && bytes > 0) std::memcpy(copy + offset, own + offset, bytes);
  }
  barrier_.arrive();
  co_await barrier_;
}

// ---- the row --------------------------------------------------------------------------------------------------------

namespace {

bool suits_hierarchical(const AllreduceTask& task, const Topology& topology) {
  return task.node_shared && !alike(topology);
}

/// Where each rank has a node to itself it is a ring.
AllreduceAlgorithm ring_of_nodes(const Topology& topology) {
  return topology.most_ranks_on_a_node == 1 ? AllreduceAlgorithm::ring : AllreduceAlgorithm::hierarchical;
}

std::optional<double> hierarchical_seconds(const MessageTimes& times, double bytes,
                                           const MessageTimes::Packed& packed) {
  const auto across = times.ring(times.nodes(), MessageTimes::Way{times.slices()}, bytes / times.slices(), packed);
  const auto window = times.window(bytes);
  if (!across || !window) return std::nullopt;
  return *window + *across;
}

std::unique_ptr<Algorithm> make_hierarchical(const AllreduceParts& parts) {
  return std::make_unique<Hierarchical>(parts.copies, parts.reduction, parts.slices, parts.across_nodes(), parts.wire);
}

}  // namespace

extern const AllreduceRow hierarchical_row;
constinit const AllreduceRow hierarchical_row{.algorithm = AllreduceAlgorithm::hierarchical,
                                              .name = "hierarchical",
                                              .help = "`node` inside each node, a ring a slice across nodes",
                                              .means = AllreduceMeans::node_memory,
                                              .roundings = direct_roundings,
                                              .refusal = refuse_private_memory,
                                              .suits = suits_hierarchical,
                                              .becomes = ring_of_nodes,
                                              .cost = hierarchical_seconds,
                                              .make = make_hierarchical};

}  // namespace ronda
