#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <ronda/core/device_context.hpp>
#include <ronda/core/state.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/runtime/checkpoint/state_copy.hpp>
#include <ronda/runtime/io/safetensors.hpp>

namespace ronda {

/// True for an integer state, equal on all ranks that have it; it is stored in the manifest and in no share.
[[nodiscard]] bool is_counter(const State& state) noexcept;

/// Returns the states that `rank` of `ranks` writes: all its per-rank states, all its sharded states, which are whole
/// only on this rank (DividedStates), and a share of the states that are equal on all ranks, so that shares have about
/// the same number of bytes (the largest first, each to the rank with the fewest bytes). Called with the same states on
/// every rank, except sharded ones, the shares together contain each state once. Throws LogicError for states that
/// cannot be written: a type other than float32 (except counters), or a duplicate name.
[[nodiscard]] std::vector<State> share_of(std::span<const State> states, int rank, int ranks);

/// A copy of some states in host memory; training may change the states while the copy is written. Taken by one thread,
/// then read by another.
///
/// A device's states are first copied on the device, in the order of its stream, and from there to pinned host memory
/// on a separate stream: training continues meanwhile, and its thread does not wait.
class Snapshot {
 public:
  /// Allocates the memory. The states' tensors must outlive this object. Throws ResourceError.
  explicit Snapshot(std::vector<State> states, const ComputeDevice& device = ComputeDevice::processor());
  Snapshot(const Snapshot&) = delete;
  ~Snapshot();

  /// Copies the states in their memory layout. Allocates nothing. Throws DeviceError.
  void take();
  /// Returns the last copy in file layout; waits until it is in host memory. Throws DeviceError.
  [[nodiscard]] std::vector<NamedTensor> tensors() const;

  [[nodiscard]] std::span<const State> states() const noexcept { return copy_.states(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return copy_.bytes(); }

 private:
  ComputeDevice device_, beside_;
  StateCopy copy_;
  StatesOnHost here_;
  Event arrived_;
};

}  // namespace ronda
