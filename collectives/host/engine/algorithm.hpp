#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include <ronda/collectives/host/task.hpp>
#include <ronda/collectives/host/transport/traffic.hpp>
#include <ronda/core/state.hpp>

namespace ronda {

/// A collective over certain memory and ranks, which can be run many times. All memory that its coroutine uses belongs
/// to the object or outlives it.
class Algorithm : public FrameOwner {
 public:
  virtual ~Algorithm() = default;
  /// One run. The task of the last one must be destroyed first.
  virtual Task run() = 0;
  /// Allocates all memory that runs need: a run allocates nothing. A task that is never resumed touches nothing.
  virtual void prepare() { static_cast<void>(run()); }
  /// Whether runs must begin in the order in which they were started, as MPI's own collectives must.
  [[nodiscard]] virtual bool in_order() const noexcept { return false; }
  /// Visits all through which other ranks can reach this object's memory and operands: its transports and barriers.
  virtual void visit_traffic(const std::function<void(Traffic&)>& visit) = 0;

  /// Visits the state that one run leaves for the next, under names that begin with `name`.
  virtual void visit(const std::string& /*name*/, StateVisitor& /*visitor*/) {}
  /// Bytes that it holds beside its operands: for compression, or for operands of a device.
  [[nodiscard]] virtual std::size_t memory() const noexcept { return 0; }
  /// Bytes that this rank has sent in all runs, where that is not what went through the transports; else 0.
  [[nodiscard]] virtual std::uint64_t sent_bytes() const noexcept { return 0; }
};

}  // namespace ronda
