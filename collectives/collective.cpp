#include <ronda/collectives/collective.hpp>
#include <ronda/core/enum_names.hpp>
#include <ronda/core/error.hpp>

namespace ronda {
namespace {

constexpr EnumNames<AllreduceAlgorithm, 9> algorithm_names{{
    {AllreduceAlgorithm::automatic, "auto"},
    {AllreduceAlgorithm::node, "node"},
    {AllreduceAlgorithm::ring, "ring"},
    {AllreduceAlgorithm::halving, "halving"},
    {AllreduceAlgorithm::doubling, "doubling"},
    {AllreduceAlgorithm::hierarchical, "hierarchical"},
    {AllreduceAlgorithm::mpi, "mpi"},
    {AllreduceAlgorithm::nccl, "nccl"},
    {AllreduceAlgorithm::staged, "staged"},
}};

}  // namespace

AllreduceAlgorithm parse_allreduce(std::string_view name) { return parse_name(algorithm_names, name, "an allreduce"); }

std::string_view name_of(AllreduceAlgorithm algorithm) noexcept { return find_name(algorithm_names, algorithm); }

void require_fitting(AllreduceAlgorithm algorithm, DeviceKind device) {
  if (algorithm == AllreduceAlgorithm::automatic) return;
  const bool of_devices = algorithm == AllreduceAlgorithm::nccl || algorithm == AllreduceAlgorithm::staged;
  if (of_devices == (device != DeviceKind::cpu)) return;
  const std::string name(name_of(algorithm));
  if (of_devices)
    throw InputError("the allreduce '" + name +
                     "' is for ranks on GPUs, and these are on CPUs; take --device cuda, or " +
                     "another --allreduce (auto, node, ring, halving, doubling, hierarchical, mpi)");
  throw InputError("the allreduce '" + name + "' is for ranks on CPUs, and these are on GPUs; take --allreduce auto, " +
                   "nccl or staged");
}

}  // namespace ronda
