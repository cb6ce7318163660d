#include <ronda/collectives/algorithms/plain_mpi.hpp>

#include <algorithm>

namespace ronda {

Task PlainMpi::run() {
  const MPI_Datatype type = data_.dtype == DType::float32 ? MPI_FLOAT : MPI_DOUBLE;
  constexpr std::size_t most = mpi::largest_message / sizeof(double);  // MPI counts with 31 bits
  for (std::size_t begin = 0; begin < data_.count; begin += most) {
    const Elements piece = data_.part({begin, std::min(data_.count, begin + most)});
    mpi::check(MPI_Allreduce(MPI_IN_PLACE, piece.data, static_cast<int>(piece.count), type, MPI_SUM, communicator_),
               "MPI_Allreduce");
  }
  co_return;
}

}  // namespace ronda
