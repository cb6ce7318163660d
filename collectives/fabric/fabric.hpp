#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include <ronda/collectives/fabric/channel.hpp>
#include <ronda/collectives/fabric/roster.hpp>
#include <ronda/collectives/fabric/turn.hpp>
#include <ronda/collectives/host/transport/transport.hpp>
#include <ronda/core/clock.hpp>

namespace ronda {

class Algorithm;
struct Elements;
struct Reduction;

/// A transport that a fabric has opened. `global_rank` is a rank of the world.
class FabricTransport : public Transport {
 public:
  /// Messages that start from now on use this channel. No message is in flight.
  virtual void use(FabricChannel channel) noexcept = 0;
  /// Messages received since the last `use`.
  [[nodiscard]] virtual std::size_t received() const noexcept = 0;
};

/// Allreduces by the fabric's own function, between certain ranks.
class FabricAllreduces {
 public:
  virtual ~FabricAllreduces() = default;
  /// @param data  outlives the algorithm, as this object does
  [[nodiscard]] virtual std::unique_ptr<Algorithm> make(const Elements& data, const Reduction& reduction) = 0;
};

/// How bytes leave this process: one object per world, which opens the transports of all its groups. Its requests are
/// called in its turn only, by the engine.
class Fabric {
 public:
  Fabric() = default;
  Fabric(const Fabric&) = delete;
  virtual ~Fabric() = default;

  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  [[nodiscard]] virtual const Roster& roster() const noexcept = 0;
  /// Messages between some ranks, which are numbered from 0 in the order of the list. Not collective.
  /// @param ranks    the same list on all of these ranks; this rank is one
  /// @param channel  the same on all of them; no other transport in use between two of these ranks has it
  [[nodiscard]] virtual std::unique_ptr<FabricTransport> open(Ranks ranks, FabricChannel channel) = 0;

  [[nodiscard]] virtual Turn& turn() noexcept = 0;
  /// Whether any thread of this process may call it, one at a time.
  /// @param promised  the program itself does not call what is below the fabric
  [[nodiscard]] virtual bool takes_any_thread(bool promised) const = 0;
  /// The time by which all that runs in this world waits and decides. Outlives the world.
  [[nodiscard]] virtual const Clock& clock() const noexcept { return steady_clock(); }
  /// Seconds for measurements of messages; under a simulated MPI the simulated ones.
  [[nodiscard]] virtual double seconds() const noexcept { return clock().now(); }

  /// Null: the fabric has no allreduce of its own. Collective over these ranks, which have all come to this call.
  /// @param all  whether every one of these ranks says yes
  [[nodiscard]] virtual std::unique_ptr<FabricAllreduces> own_allreduces(const Ranks& /*ranks*/,
                                                                         const std::function<bool(bool)>& /*all*/) {
    return nullptr;
  }
  /// Ends the processes of all ranks as far as it reaches them; returns if it cannot end this one.
  virtual void abort(int status) noexcept = 0;
};

}  // namespace ronda
