#include <ronda/collectives/collective.hpp>
#include <ronda/runtime/core/error.hpp>

#include <array>
#include <utility>

namespace ronda {
namespace {

constexpr std::array<std::pair<AllreduceAlgorithm, std::string_view>, 7> names{{
    {AllreduceAlgorithm::automatic, "auto"},
    {AllreduceAlgorithm::node, "node"},
    {AllreduceAlgorithm::ring, "ring"},
    {AllreduceAlgorithm::halving, "halving"},
    {AllreduceAlgorithm::doubling, "doubling"},
    {AllreduceAlgorithm::hierarchical, "hierarchical"},
    {AllreduceAlgorithm::mpi, "mpi"},
}};

}  // namespace

AllreduceAlgorithm parse_allreduce(std::string_view name) {
  for (const auto& [algorithm, text] : names)
    if (text == name) return algorithm;
  throw InputError("'" + std::string(name) +
                   "' is no allreduce: expected auto, node, ring, halving, doubling, hierarchical or mpi");
}

std::string_view name_of(AllreduceAlgorithm algorithm) noexcept {
  for (const auto& [known, text] : names)
    if (known == algorithm) return text;
  return "?";
}

}  // namespace ronda
