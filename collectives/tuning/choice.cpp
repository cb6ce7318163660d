#include <ronda/collectives/tuning/choice.hpp>
#include <ronda/collectives/tuning/compression_choice.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <limits>

namespace ronda {
namespace {

/// The longest that algorithms take which send all of the data at once.
constexpr std::size_t one_message = std::size_t{1} << 30;

/// Up to here a message's bytes cost nothing beside the message.
constexpr std::size_t few_bytes = 256;

/// Less is a few packets: compression saves nothing that can be measured.
constexpr std::size_t worth_packing = std::size_t{16} << 10;

bool alike(const Topology& topology) { return topology.nodes == 1 || topology.most_ranks_on_a_node == 1; }

/// What `algorithm` may send numbers as.
std::vector<Compression> compressions(const AllreduceTask& task, AllreduceAlgorithm algorithm,
                                      const Topology& topology) {
  if (task.compression == Compression::none || sends_nothing(algorithm, topology)) return {Compression::none};
  if (task.compression != Compression::automatic) return {task.compression};
  if (topology.nodes == 1 || task.bytes < worth_packing) return {Compression::none};  // a network's bytes are dear
  return {Compression::none, Compression::bf16};
}

/// The algorithm in each way, with the model's times.
void add_choices(std::vector<AllreduceChoice>& choices, const AllreduceTask& task, AllreduceAlgorithm algorithm,
                 const Topology& topology, const CostModel* model) {
  for (const Compression compression : compressions(task, algorithm, topology))
    choices.push_back(
        {algorithm, compression, model == nullptr ? std::nullopt : model->seconds(algorithm, task.bytes, compression)});
}

/// Without a model the first: uncompressed, unless that was asked for.
AllreduceChoice best_of(const std::vector<AllreduceChoice>& choices, Compression wanted) {
  constexpr double worth_rounding = 0.9;
  const auto weight = [&](const AllreduceChoice& choice) {
    const bool by_itself = wanted == Compression::automatic && choice.compression != Compression::none;
    return choice.seconds.value_or(std::numeric_limits<double>::infinity()) / (by_itself ? worth_rounding : 1);
  };
  return std::ranges::min(choices, {}, weight);
}

AllreduceChoice with_best_compression(const AllreduceTask& task, AllreduceAlgorithm algorithm, const Topology& topology,
                                      const CostModel* model) {
  std::vector<AllreduceChoice> choices;
  add_choices(choices, task, algorithm, topology, model);
  return best_of(choices, task.compression);
}

/// Without a model: the one that is never bad for much data.
AllreduceChoice fastest(const AllreduceTask& task, const Topology& topology, const CostModel* model) {
  if (task.node_shared && topology.nodes == 1)
    return with_best_compression(task, AllreduceAlgorithm::node, topology, model);
  if (!depends_on_costs(task, topology))
    return with_best_compression(task, AllreduceAlgorithm::doubling, topology, model);
  if (model == nullptr) return with_best_compression(task, AllreduceAlgorithm::ring, topology, model);
  return best_of(possible_choices(task, topology, *model), task.compression);
}

}  // namespace

bool depends_on_costs(const AllreduceTask& task, const Topology& topology) {
  if (task.wanted != AllreduceAlgorithm::automatic)
    return task.compression == Compression::automatic && topology.nodes > 1 && task.bytes >= worth_packing;
  if (task.node_shared && topology.nodes == 1) return false;  // also where ranks share cores
  return task.bytes > few_bytes || !alike(topology);
}

std::vector<AllreduceChoice> possible_choices(const AllreduceTask& task, const Topology& topology,
                                              const CostModel& model) {
  std::vector<AllreduceAlgorithm> algorithms{AllreduceAlgorithm::ring};  // the first of equals
  if (task.wanted != AllreduceAlgorithm::automatic) {
    algorithms = {task.wanted};
  } else if (task.bytes <= one_message) {
    algorithms.push_back(AllreduceAlgorithm::halving);
    algorithms.push_back(AllreduceAlgorithm::doubling);
  }
  if (task.wanted == AllreduceAlgorithm::automatic && task.node_shared && !alike(topology))
    algorithms.push_back(AllreduceAlgorithm::hierarchical);
  std::vector<AllreduceChoice> choices;
  for (const AllreduceAlgorithm algorithm : algorithms) add_choices(choices, task, algorithm, topology, &model);
  return choices;
}

std::string refusal_of(const AllreduceTask& task, const Topology& topology) {
  const bool in_memory = task.wanted == AllreduceAlgorithm::node || task.wanted == AllreduceAlgorithm::hierarchical;
  if (task.wanted == AllreduceAlgorithm::node && topology.nodes > 1)
    return "the allreduce 'node' needs all ranks on one node, these are on " + std::to_string(topology.nodes) +
           "; take hierarchical or auto";
  if (in_memory && !task.node_shared && topology.most_ranks_on_a_node > 1)
    return "the allreduce '" + std::string(name_of(task.wanted)) +
           "' needs memory that the ranks of a node share, and this tensor's is not: allocate it with "
           "Memory::node_shared and see that /dev/shm has the room, or take ring or auto";
  const bool in_one_message = task.wanted == AllreduceAlgorithm::halving || task.wanted == AllreduceAlgorithm::doubling;
  if (in_one_message && task.bytes > one_message)
    return "the allreduce '" + std::string(name_of(task.wanted)) + "' takes 1 GiB at most, not " +
           std::to_string(task.bytes) + " bytes; take ring or auto";
  return {};
}

AllreduceChoice choose_allreduce(const AllreduceTask& task, const Topology& topology, const CostModel* model) {
  if (task.wanted == AllreduceAlgorithm::automatic) return fastest(task, topology, model);
  require_fitting(task.wanted, DeviceKind::cpu);
  if (const std::string why = refusal_of(task, topology); !why.empty()) throw InputError(why);
  const bool plain_ring = task.wanted == AllreduceAlgorithm::hierarchical && topology.most_ranks_on_a_node == 1;
  return with_best_compression(task, plain_ring ? AllreduceAlgorithm::ring : task.wanted, topology, model);
}

}  // namespace ronda
