#pragma once
#include <map>
#include <utility>

#include <ronda/collectives/algorithm.hpp>
#include <ronda/collectives/reduction.hpp>
#include <ronda/collectives/transport/mpi.hpp>

namespace ronda {

/// The operations for which MPI calls functions of ours: on types that it does not have, and where it leaves open what
/// becomes of NaN and of zeros with signs. Made and freed where nobody else calls MPI.
class MpiOperations {
 public:
  MpiOperations();
  MpiOperations(const MpiOperations&) = delete;
  ~MpiOperations();

  /// Ours or MPI's own.
  [[nodiscard]] MPI_Op operation(ReduceOp op, DType dtype) const;

 private:
  std::map<std::pair<ReduceOp, DType>, MPI_Op> ours_;
};

/// MPI_Allreduce: the reference, and the best choice for a few bytes over a network. It returns when all ranks have
/// come.
class PlainMpi final : public Algorithm {
 public:
  PlainMpi(const mpi::Communicator& communicator, const MpiOperations& operations, Elements data,
           const Reduction& reduction)
      : communicator_(communicator.handle()),
        operation_(operations.operation(reduction.op, data.dtype)),
        data_(data),
        reduction_(reduction) {}

  Task run() override;
  [[nodiscard]] bool blocking() const noexcept override { return true; }

 private:
  MPI_Comm communicator_;
  MPI_Op operation_;
  Elements data_;
  Reduction reduction_;
};

}  // namespace ronda
