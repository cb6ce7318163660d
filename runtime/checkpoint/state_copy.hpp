#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/compute_device.hpp>
#include <ronda/core/state.hpp>

namespace ronda {

/// Copies of some states, each in memory like its own: of a device's states on that device. Taking them and giving them
/// back are work of the device's stream, so nobody waits for them; states of the host itself are copied at once.
class StateCopy {
 public:
  /// Takes the memory. The states' tensors outlive this object. Throws ResourceError.
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

/// States as the host can read and write them: those that are its own themselves, and pinned memory for those of a
/// device, which are brought here and back by the device's stream.
class StatesOnHost {
 public:
  /// Takes the memory. The states' tensors outlive this object. Throws ResourceError.
  StatesOnHost(std::span<const State> states, ComputeDevice device);

  /// In the order of the stream; allocate nothing, wait for nothing.
  void fetch();
  void send() const;
  /// For what was fetched or sent last.
  void wait() const { device_.stream->synchronize(); }

  /// Under the states' names, in their order.
  [[nodiscard]] std::span<const State> states() const noexcept { return here_; }

 private:
  ComputeDevice device_;
  std::vector<State> there_, here_;
  Buffer memory_;
};

}  // namespace ronda
