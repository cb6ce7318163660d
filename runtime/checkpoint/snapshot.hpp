#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <ronda/core/compute_device.hpp>
#include <ronda/core/event.hpp>
#include <ronda/core/state.hpp>
#include <ronda/runtime/checkpoint/state_copy.hpp>
#include <ronda/runtime/io/safetensors.hpp>

namespace ronda {

/// Whole numbers, alike on all ranks that have them: they go into the manifest, and are no part of any share.
[[nodiscard]] bool is_counter(const State& state) noexcept;

/// What `rank` of `ranks` writes: its own of everything that is per rank, all that is shown as sharded, which is whole
/// on this rank alone (DividedStates), and of what all have alike a share, so that the shares have about as many bytes
/// (the largest first, each to the rank that has least). The same states on every rank, but for those that are sharded,
/// give shares that together have each state once. Throws LogicError for states that cannot be written: of another type
/// than float32 (counters apart), two of one name.
[[nodiscard]] std::vector<State> share_of(std::span<const State> states, int rank, int ranks);

/// A copy of some states in the host's memory, which training may change while the copy is written. Taken by one
/// thread, then read by another.
///
/// On a device the states are copied there first, in the order of its stream, and from there to pinned memory of the
/// host by a stream of their own: the training goes on beside it, and its thread waits for nothing.
class Snapshot {
 public:
  /// Takes the memory. The states' tensors outlive this object. Throws ResourceError.
  explicit Snapshot(std::vector<State> states, const ComputeDevice& device = ComputeDevice::processor());
  Snapshot(const Snapshot&) = delete;
  ~Snapshot();

  /// Copies them, as they lie in memory. Allocates nothing. Throws DeviceError.
  void take();
  /// What was taken last, in file layout; waits until it is here. Throws DeviceError.
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
