#pragma once
#include <ronda/collectives/algorithm.hpp>
#include <ronda/collectives/reduction.hpp>
#include <ronda/collectives/transport/mpi.hpp>

namespace ronda {

/// MPI_Allreduce: the reference, and the best choice for a few bytes over a network. It returns when all ranks have
/// come.
class PlainMpi final : public Algorithm {
 public:
  PlainMpi(const mpi::Communicator& communicator, Elements data) : communicator_(communicator.handle()), data_(data) {}

  Task run() override;
  [[nodiscard]] bool blocking() const noexcept override { return true; }

 private:
  MPI_Comm communicator_;
  Elements data_;
};

}  // namespace ronda
