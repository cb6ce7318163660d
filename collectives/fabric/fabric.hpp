#pragma once
#include <cstddef>
#include <memory>

#include <ronda/collectives/fabric/channel.hpp>
#include <ronda/collectives/fabric/roster.hpp>
#include <ronda/collectives/host/transport/transport.hpp>

namespace ronda {

/// A transport that a fabric has opened. `global_rank` is a rank of the world.
class FabricTransport : public Transport {
 public:
  /// Messages that start from now on use this channel. No message is in flight.
  virtual void use(FabricChannel channel) noexcept = 0;
  /// Messages received since the last `use`.
  [[nodiscard]] virtual std::size_t received() const noexcept = 0;
};

/// How bytes leave this process: one object per world, which opens the transports of all its groups.
class Fabric {
 public:
  Fabric() = default;
  Fabric(const Fabric&) = delete;
  virtual ~Fabric() = default;

  [[nodiscard]] virtual const Roster& roster() const noexcept = 0;
  /// Messages between some ranks, which are numbered from 0 in the order of the list. Not collective.
  /// @param ranks    the same list on all of these ranks; this rank is one
  /// @param channel  the same on all of them; no other transport in use between two of these ranks has it
  [[nodiscard]] virtual std::unique_ptr<FabricTransport> open(Ranks ranks, FabricChannel channel) = 0;
};

}  // namespace ronda
