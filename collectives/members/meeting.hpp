#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/host/engine/engine.hpp>
#include <ronda/collectives/host/transport/mpi.hpp>
#include <ronda/collectives/host/transport/mpi_transport.hpp>
#include <ronda/collectives/watch/recorder.hpp>

namespace ronda {

/// How the ranks of a group gather what they need to set things up: by messages that the engine moves beside all
/// others, so that a rank that waits here still does its part elsewhere, and can be told that others will not come.
class Meeting final : public mpi::Gatherer {
 public:
  /// @param communicator  outlives this object
  /// @param names         what its ranks are called in the world
  Meeting(std::shared_ptr<Engine> engine, const mpi::Communicator& communicator, std::vector<int> names);

  /// What follows is for this. Ranks that are at different places get an error.
  void at(std::string_view place) noexcept { place_ = place; }

  void gather(std::span<const std::byte> mine, std::span<std::byte> all,
              const std::vector<std::size_t>& bytes) override;

 private:
  std::shared_ptr<Engine> engine_;
  MPI_Comm communicator_;
  int rank_;
  MpiTransport::Members members_;
  Ledger ledger_;  ///< writes nothing down: who calls does
  std::string place_;
  std::uint64_t gatherings_ = 0;
};

}  // namespace ronda
