// MPI's own allreduce: the fabric makes it (fabric/mpi/mpi_allreduces.hpp); this is its row.
#include <ronda/collectives/host/algorithms/allreduce_row.hpp>

namespace ronda {
namespace {

std::unique_ptr<Algorithm> make_by_fabric(const AllreduceParts& parts) { return parts.by_fabric(); }

}  // namespace

extern const AllreduceRow mpi_row;
constinit const AllreduceRow mpi_row{.algorithm = AllreduceAlgorithm::mpi,
                                     .name = "mpi",
                                     .help = "MPI_Iallreduce, on a copy; the reference",
                                     .means = AllreduceMeans::mpi,
                                     .make = make_by_fabric};

}  // namespace ronda
