#pragma once
#include <cstddef>
#include <functional>
#include <string>

#include <ronda/collectives/host/task.hpp>
#include <ronda/collectives/host/transport/traffic.hpp>
#include <ronda/core/state.hpp>

namespace ronda {

/// A collective over certain memory and ranks, which can be run many times. What its coroutine touches is owned by the
/// object or outlives it.
class Algorithm : public FrameOwner {
 public:
  virtual ~Algorithm() = default;
  /// One run; the next only after the task of the last is gone.
  virtual Task run() = 0;
  /// Takes the memory that runs need, so that none of them has to. A task that is never resumed touches nothing.
  virtual void prepare() { static_cast<void>(run()); }
  /// True where runs must begin in the order in which they were started, as MPI's own collectives must.
  [[nodiscard]] virtual bool in_order() const noexcept { return false; }
  /// Shows through what other ranks reach its memory, and its operands.
  virtual void each_traffic(const std::function<void(Traffic&)>& look) = 0;

  /// Shows what of one run the next builds on, under names that begin with `name`.
  virtual void visit(const std::string& /*name*/, StateVisitor& /*visitor*/) {}
  /// Bytes that it keeps beside its operands: for compression, or for operands of a device.
  [[nodiscard]] virtual std::size_t memory() const noexcept { return 0; }
};

}  // namespace ronda
