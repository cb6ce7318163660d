#include <ronda/collectives/collective.hpp>
#include <ronda/runtime/core/enum_names.hpp>

namespace ronda {
namespace {

constexpr EnumNames<AllreduceAlgorithm, 7> algorithm_names{{
    {AllreduceAlgorithm::automatic, "auto"},
    {AllreduceAlgorithm::node, "node"},
    {AllreduceAlgorithm::ring, "ring"},
    {AllreduceAlgorithm::halving, "halving"},
    {AllreduceAlgorithm::doubling, "doubling"},
    {AllreduceAlgorithm::hierarchical, "hierarchical"},
    {AllreduceAlgorithm::mpi, "mpi"},
}};

}  // namespace

AllreduceAlgorithm parse_allreduce(std::string_view name) { return parse_name(algorithm_names, name, "an allreduce"); }

std::string_view name_of(AllreduceAlgorithm algorithm) noexcept { return find_name(algorithm_names, algorithm); }

}  // namespace ronda
