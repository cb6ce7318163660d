#pragma once
#include <ronda/collectives/fabric/fabric.hpp>
#include <ronda/collectives/host/transport/mpi.hpp>

namespace ronda {

/// A world over MPI: all its transports use one communicator, and are told apart by tags.
class MpiFabric final : public Fabric {
 public:
  /// Duplicates `original`. MPI waits for the other ranks. Collective.
  explicit MpiFabric(MPI_Comm original);
  ~MpiFabric() override;

  [[nodiscard]] const Roster& roster() const noexcept override { return roster_; }
  [[nodiscard]] std::unique_ptr<FabricTransport> open(Ranks ranks, FabricChannel channel) override;
  /// For MPI's own collectives between some ranks. MPI waits for these. Collective over them.
  [[nodiscard]] mpi::Communicator communicator_of(const std::vector<int>& ranks) const;

 private:
  mpi::Communicator all_;
  Roster roster_;
};

}  // namespace ronda
