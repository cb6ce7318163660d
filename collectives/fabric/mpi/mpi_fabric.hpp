#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include <ronda/collectives/fabric/fabric.hpp>
#include <ronda/collectives/fabric/mpi/mpi.hpp>
#include <ronda/collectives/fabric/mpi/mpi_allreduces.hpp>
#include <ronda/collectives/fabric/mpi/mpi_turn.hpp>
#include <ronda/collectives/watch/recorder.hpp>

namespace ronda {

/// A world over MPI: all its transports use one communicator, and the channel is the tag.
class MpiFabric final : public Fabric {
 public:
  /// Waits for all ranks, then duplicates `original`. Collective.
  /// @param owns_mpi  the program itself does not call MPI
  /// @param recorder  records the wait inside MPI; may be null
  MpiFabric(MPI_Comm original, bool owns_mpi, std::shared_ptr<Recorder> recorder);
  ~MpiFabric() override;

  [[nodiscard]] std::string_view name() const noexcept override { return "MPI"; }
  [[nodiscard]] const Roster& roster() const noexcept override { return roster_; }
  [[nodiscard]] std::unique_ptr<FabricTransport> open(Ranks ranks, FabricChannel channel) override;
  [[nodiscard]] Turn& turn() noexcept override { return turn_; }
  /// MPI_THREAD_SERIALIZED is enough where the program itself does not call MPI.
  [[nodiscard]] bool takes_any_thread(bool promised) const override;
  [[nodiscard]] double seconds() const noexcept override { return mpi::seconds(); }
  [[nodiscard]] std::unique_ptr<FabricAllreduces> own_allreduces(const Ranks& ranks,
                                                                 const std::function<bool(bool)>& all) override;
  void abort(int status) noexcept override;

 private:
  /// Runs `work`, in which MPI waits for the ranks that call this together.
  template <class Work>
  void wait_in_mpi(const std::function<bool(bool)>& all, Work&& work);

  MpiTurn& turn_ = MpiTurn::of_process();
  const bool owns_mpi_;
  const std::shared_ptr<Recorder> recorder_;
  std::uint64_t priority_ = 0;  ///< orders the worlds of a process: see MpiTurn::reserve
  mpi::Communicator all_;
  std::optional<MpiOperations> operations_;
  Roster roster_;
};

}  // namespace ronda
