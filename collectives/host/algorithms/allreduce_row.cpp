#include <ronda/collectives/host/algorithms/allreduce_row.hpp>

namespace ronda {

const AllreduceRow* find_row(AllreduceAlgorithm algorithm) noexcept {
  for (const AllreduceRow* row : allreduce_rows())
    if (row->algorithm == algorithm) return row;
  return nullptr;
}

std::string refuse_more_than_one_message(const AllreduceTask& task, const Topology& /*topology*/) {
  if (task.bytes <= longest_message) return {};
  return "the allreduce '" + std::string(name_of(task.wanted)) + "' takes 1 GiB at most, not " +
         std::to_string(task.bytes) + " bytes; take ring or auto";
}

std::string refuse_private_memory(const AllreduceTask& task, const Topology& topology) {
  if (task.node_shared || topology.most_ranks_on_a_node == 1) return {};
  return "the allreduce '" + std::string(name_of(task.wanted)) +
         "' needs memory that the ranks of a node share, and this tensor's is not: allocate it with "
         "Memory::node_shared and see that /dev/shm has the room, or take ring or auto";
}

}  // namespace ronda
