#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/state.hpp>
#include <ronda/runtime/checkpoint/checkpoint_options.hpp>
#include <ronda/runtime/checkpoint/state_copy.hpp>

namespace ronda {

/// Replicas get the same updates, and so stay one model, to the bit, unless memory or a processor errs. The audit
/// compares them: each rank hashes its states (a device hashes its own), and one reduction of 16 bytes checks that all
/// hashes are equal. If so, a copy of the states is kept.
///
/// If they differ, the majority of ranks is right. Without a majority, as with two ranks, the steps since the copy are
/// computed again: the ranks whose states are farther from the result have erred. All ranks are slightly wrong, because
/// a wrong parameter affects the gradients of all ranks within a step; therefore only a rollback repairs them.
///
/// Detects errors that make replicas differ: a flipped bit in parameters or optimizer states, a failed update. Does not
/// detect errors that affect all replicas equally: a wrong gradient before the reduction.
class ReplicaAudit {
 public:
  /// Allocates memory for the copy, on the same device as the states; `device` changes them. The tensors must outlive
  /// this object; states that are not replicated are copied, but not compared. Collective.
  ReplicaAudit(Communicator communicator, std::span<const State> states,
               const ComputeDevice& device = ComputeDevice::processor());

  /// Compares all ranks' states. Collective; the same result on all. Allocates nothing.
  [[nodiscard]] bool equal();
  /// Keeps a copy of the states; call it after `equal` returned true. For a device's states the copy is enqueued on its
  /// stream.
  void keep() { copy_.take(); }

  /// The ranks that erred.
  struct Finding {
    std::vector<int> ranks;  ///< empty: no majority
    std::string state;       ///< the first state that differs
    std::string text;        ///< for messages: rank, host, state
  };
  /// Finds the ranks that erred. Call it after `equal` returned false. Collective; the same on all ranks.
  [[nodiscard]] Finding majority();

  /// Call on all ranks: remembers the current states, and restores the copy, so that the caller can compute the steps
  /// since then again.
  void go_back();
  /// Call it after these steps: finds the ranks whose remembered states are farther from the result. Collective; the
  /// same on all ranks.
  [[nodiscard]] Finding judge();

  [[nodiscard]] std::size_t bytes() const noexcept { return copy_.bytes(); }

 private:
  void hash_states();
  [[nodiscard]] Finding accuse(std::vector<int> ranks, const std::string& state) const;

  Communicator communicator_;
  ComputeDevice device_;
  std::vector<State> states_;                ///< replicated states: first the device's, then the host's
  std::size_t over_there_;                   ///< number of states on the device
  std::unique_ptr<DeviceHash> device_hash_;  ///< of these states; null if there are none
  std::vector<std::uint64_t> hashes_;        ///< by state
  Buffer words_;  ///< a hash of all states, and its complement: the two minima give minimum and maximum
  std::unique_ptr<Collective> minimum_;
  StateCopy copy_;
  std::optional<StateCopy> suspects_;
};

}  // namespace ronda
