#include <ronda/collectives/host/algorithms/allreduce_row.hpp>
#include <ronda/collectives/tuning/compression_choice.hpp>
#include <ronda/core/error.hpp>

#include <string>

namespace ronda {
namespace {

/// Why these numbers cannot be compressed by this algorithm; empty where they can.
std::string obstacle(AllreduceAlgorithm algorithm, const Elements& elements, ReduceOp op) {
  if (const AllreduceRow* const row = find_row(algorithm); row != nullptr && !row->compresses())
    return "the allreduce '" + std::string(row->name) + "' sends numbers as they are; take ring, hierarchical or auto";
  if (elements.dtype != DType::float32)
    return "it takes float32 alone, not " + std::string(name_of(elements.dtype)) + "; leave it out";
  if (op != ReduceOp::sum && op != ReduceOp::mean)
    return "it takes sum and mean alone, not " + std::string(name_of(op)) + "; leave it out";
  return {};
}

}  // namespace

bool sends_nothing(AllreduceAlgorithm algorithm, const Topology& topology) noexcept {
  const AllreduceRow* const row = find_row(algorithm);
  return row != nullptr && row->in_node_memory() && topology.nodes == 1;
}

Compression possible_compression(Compression wanted, AllreduceAlgorithm algorithm, const Elements& elements,
                                 ReduceOp op) {
  if (wanted == Compression::none) return Compression::none;
  const std::string why_not = obstacle(algorithm, elements, op);
  if (why_not.empty()) return wanted;
  if (wanted == Compression::automatic) return Compression::none;
  throw InputError("the compression '" + std::string(name_of(wanted)) + "': " + why_not);
}

}  // namespace ronda
