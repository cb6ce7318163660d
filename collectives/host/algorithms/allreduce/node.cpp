#include <ronda/collectives/host/algorithms/allreduce/direct.hpp>
#include <ronda/collectives/host/algorithms/allreduce_row.hpp>
#include <ronda/collectives/host/node/one_shot.hpp>
#include <ronda/collectives/host/node/two_shot.hpp>

namespace ronda {
namespace {

std::string refuse_node(const AllreduceTask& task, const Topology& topology) {
  if (topology.nodes > 1)
    return "the allreduce 'node' needs all ranks on one node, these are on " + std::to_string(topology.nodes) +
           "; take hierarchical or auto";
  return refuse_private_memory(task, topology);
}

bool suits_node(const AllreduceTask& task, const Topology& topology) { return task.node_shared && topology.nodes == 1; }

std::optional<double> node_seconds(const MessageTimes& times, double bytes, const MessageTimes::Packed& /*packed*/) {
  return times.nodes() == 1 ? times.window(bytes) : std::nullopt;
}

std::unique_ptr<Algorithm> make_node(const AllreduceParts& parts) {
  if (parts.elements.bytes().size() <= OneShot::largest_bytes)
    return std::make_unique<OneShot>(parts.copies, parts.reduction);
  return std::make_unique<TwoShot>(parts.copies, parts.reduction);
}

}  // namespace

extern const AllreduceRow node_row;
constinit const AllreduceRow node_row{
    .algorithm = AllreduceAlgorithm::node,
    .name = "node",
    .help = "in the node's shared memory, by two shots, or by one where it is little; all ranks on one node",
    .means = AllreduceMeans::node_memory,
    .roundings = direct_roundings,
    .brief_bytes = std::size_t{16} << 10,
    .refusal = refuse_node,
    .suits = suits_node,
    .cost = node_seconds,
    .make = make_node};

}  // namespace ronda
