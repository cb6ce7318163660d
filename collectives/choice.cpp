#include <ronda/collectives/choice.hpp>
#include <ronda/runtime/core/error.hpp>

#include <algorithm>
#include <limits>

namespace ronda {
namespace {

/// The longest that algorithms take which send all of the data at once.
constexpr std::size_t one_message = std::size_t{1} << 30;

/// Up to here a message's bytes cost nothing beside the message.
constexpr std::size_t few_bytes = 256;

bool alike(const Topology& topology) { return topology.nodes == 1 || topology.most_ranks_on_a_node == 1; }

AllreduceChoice with_model(AllreduceAlgorithm algorithm, std::size_t bytes, const CostModel* model) {
  AllreduceChoice choice{algorithm};
  if (model == nullptr) return choice;
  choice.seconds = model->seconds(algorithm, bytes);
  return choice;
}

/// Without a model: the one that is never bad for much data.
AllreduceChoice fastest(const AllreduceTask& task, const Topology& topology, const CostModel* model) {
  if (task.node_shared && topology.nodes == 1) return with_model(AllreduceAlgorithm::node, task.bytes, model);
  if (!depends_on_costs(task, topology)) return with_model(AllreduceAlgorithm::doubling, task.bytes, model);
  if (model == nullptr) return {AllreduceAlgorithm::ring};
  const auto expected = [](const AllreduceChoice& choice) {
    return choice.seconds.value_or(std::numeric_limits<double>::infinity());
  };
  return std::ranges::min(possible_choices(task, topology, *model), {}, expected);
}

}  // namespace

bool depends_on_costs(const AllreduceTask& task, const Topology& topology) {
  if (task.wanted != AllreduceAlgorithm::automatic) return false;
  if (task.node_shared && topology.nodes == 1) return false;  // also where ranks share cores
  return task.bytes > few_bytes || !alike(topology);
}

std::vector<AllreduceChoice> possible_choices(const AllreduceTask& task, const Topology& topology,
                                              const CostModel& model) {
  std::vector<AllreduceAlgorithm> algorithms{AllreduceAlgorithm::ring};  // the first of equals
  if (task.bytes <= one_message) {
    algorithms.push_back(AllreduceAlgorithm::halving);
    algorithms.push_back(AllreduceAlgorithm::doubling);
  }
  if (task.node_shared && !alike(topology)) algorithms.push_back(AllreduceAlgorithm::hierarchical);
  std::vector<AllreduceChoice> choices;
  for (const AllreduceAlgorithm algorithm : algorithms) choices.push_back(with_model(algorithm, task.bytes, &model));
  return choices;
}

AllreduceChoice choose_allreduce(const AllreduceTask& task, const Topology& topology, const CostModel* model) {
  if (task.wanted == AllreduceAlgorithm::automatic) return fastest(task, topology, model);
  const bool in_memory = task.wanted == AllreduceAlgorithm::node || task.wanted == AllreduceAlgorithm::hierarchical;
  if (task.wanted == AllreduceAlgorithm::node && topology.nodes > 1)
    throw InputError("the allreduce 'node' needs all ranks on one node, these are on " +
                     std::to_string(topology.nodes) + "; take hierarchical or auto");
  if (in_memory && !task.node_shared && topology.most_ranks_on_a_node > 1)
    throw InputError("the allreduce '" + std::string(name_of(task.wanted)) +
                     "' needs memory that the ranks of a node share, and this tensor's is not: allocate it with "
                     "Memory::node_shared and see that /dev/shm has the room, or take ring or auto");
  const bool in_one_message = task.wanted == AllreduceAlgorithm::halving || task.wanted == AllreduceAlgorithm::doubling;
  if (in_one_message && task.bytes > one_message)
    throw InputError("the allreduce '" + std::string(name_of(task.wanted)) + "' takes 1 GiB at most, not " +
                     std::to_string(task.bytes) + " bytes; take ring or auto");
  const bool plain_ring = task.wanted == AllreduceAlgorithm::hierarchical && topology.most_ranks_on_a_node == 1;
  return with_model(plain_ring ? AllreduceAlgorithm::ring : task.wanted, task.bytes, model);
}

}  // namespace ronda
