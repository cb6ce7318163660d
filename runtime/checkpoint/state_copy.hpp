#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/state.hpp>

namespace ronda {

/// Copies of some states, each on the same device as its original. Copying and restoring a device's states are enqueued
/// on its stream, so no thread waits; host states are copied at once.
class StateCopy {
 public:
  /// Allocates the memory. The states' tensors must outlive this object. Throws ResourceError.
  StateCopy(std::vector<State> states, ComputeDevice device);

  /// Allocates nothing.
  void take();
  void give_back() const;

  [[nodiscard]] std::span<const State> states() const noexcept { return states_; }
  /// The copies, under the states' names.
  [[nodiscard]] std::span<const State> copies() const noexcept { return copies_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return over_there_.bytes() + here_.bytes(); }

 private:
  ComputeDevice device_;
  std::vector<State> states_, copies_;
  Buffer over_there_, here_;
};

/// States in memory that the host can read and write: the host's own states, and pinned memory for a device's states,
/// which the device's stream copies in both directions.
class StatesOnHost {
 public:
  /// Allocates the memory. The states' tensors must outlive this object. Throws ResourceError.
  StatesOnHost(std::span<const State> states, ComputeDevice device);

  /// Enqueue the copies to and from the host on the stream. Allocate nothing and do not wait.
  void fetch();
  void send() const;
  /// Waits for the last `fetch` or `send`.
  void wait() const { device_.stream->synchronize(); }

  /// In the order of the states, with their names.
  [[nodiscard]] std::span<const State> states() const noexcept { return here_; }

 private:
  ComputeDevice device_;
  std::vector<State> there_, here_;
  Buffer memory_;
};

}  // namespace ronda
