#include <ronda/collectives/choice.hpp>
#include <ronda/runtime/core/error.hpp>

namespace ronda {
namespace {

/// Below, the number of messages is what counts, of which a ring has many.
constexpr std::size_t small_for_a_ring = std::size_t{32} << 10;

/// The longest that algorithms take which send all of the data at once.
constexpr std::size_t one_message = std::size_t{1} << 30;

AllreduceAlgorithm fastest(std::size_t bytes, bool node_shared, const Topology& topology) {
  if (node_shared && topology.nodes == 1)
    return AllreduceAlgorithm::node;  // for any size, also where ranks share cores
  if (bytes <= small_for_a_ring) return AllreduceAlgorithm::doubling;
  if (node_shared && topology.most_ranks_on_a_node > 1) return AllreduceAlgorithm::hierarchical;
  return AllreduceAlgorithm::ring;
}

}  // namespace

AllreduceAlgorithm choose_allreduce(AllreduceAlgorithm wanted, std::size_t bytes, bool node_shared,
                                    const Topology& topology) {
  if (wanted == AllreduceAlgorithm::automatic) return fastest(bytes, node_shared, topology);
  const bool in_memory = wanted == AllreduceAlgorithm::node || wanted == AllreduceAlgorithm::hierarchical;
  if (wanted == AllreduceAlgorithm::node && topology.nodes > 1)
    throw InputError("the allreduce 'node' needs all ranks on one node, these are on " +
                     std::to_string(topology.nodes) + "; take hierarchical or auto");
  if (in_memory && !node_shared && topology.most_ranks_on_a_node > 1)
    throw InputError("the allreduce '" + std::string(name_of(wanted)) +
                     "' needs memory that the ranks of a node share, and this tensor's is not: allocate it with "
                     "Memory::node_shared and see that /dev/shm has the room, or take ring or auto");
  const bool in_one_message = wanted == AllreduceAlgorithm::halving || wanted == AllreduceAlgorithm::doubling;
  if (in_one_message && bytes > one_message)
    throw InputError("the allreduce '" + std::string(name_of(wanted)) + "' takes 1 GiB at most, not " +
                     std::to_string(bytes) + " bytes; take ring or auto");
  if (wanted == AllreduceAlgorithm::hierarchical && topology.most_ranks_on_a_node == 1) return AllreduceAlgorithm::ring;
  return wanted;
}

}  // namespace ronda
