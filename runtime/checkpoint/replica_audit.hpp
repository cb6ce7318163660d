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
#include <ronda/runtime/checkpoint/state_copy.hpp>

namespace ronda {

/// What becomes of a training whose replicas differ.
enum class OnDivergence : std::uint8_t {
  stop,      ///< it fails, and says which rank erred
  rollback,  ///< all ranks go back to the last audited copy, and on from there
};
/// stop, rollback. Throws InputError that lists them.
[[nodiscard]] OnDivergence parse_on_divergence(std::string_view name);
[[nodiscard]] std::string_view name_of(OnDivergence choice) noexcept;

/// Replicas get the same updates, and so stay one model, to the bit; unless memory or a processor errs. This compares
/// them: each rank hashes its states (a device hashes its own), and one reduction of 16 bytes tells whether all hashes
/// are equal. From an audit that finds them equal a copy is kept.
///
/// Where they differ, most ranks are right. Where there is no most, as with two ranks, the steps since the copy are
/// computed once more: whose states are farther from what comes out has erred. All ranks are off a little, because a
/// wrong parameter leaks into everybody's gradients within a step; so nothing less than going back is a repair.
///
/// Sees what makes replicas differ: a flipped bit in parameters or optimizer states, an update that went wrong. Does
/// not see what makes them wrong alike: a wrong gradient before the reduction.
class ReplicaAudit {
 public:
  /// Takes memory for the copy, where the states lie, which `device` changes. The tensors outlive this object; states
  /// that are not replicated are copied, but not compared. Collective.
  ReplicaAudit(Communicator communicator, std::span<const State> states,
               const ComputeDevice& device = ComputeDevice::processor());

  /// Compares all ranks' states. Collective; the same answer on all. Allocates nothing.
  [[nodiscard]] bool equal();
  /// Keeps a copy of the states, which were found equal. On a device that is work of its stream.
  void keep() { copy_.take(); }

  /// Who erred.
  struct Finding {
    std::vector<int> ranks;  ///< empty: cannot be told by a majority
    std::string state;       ///< the first that differs
    std::string text;        ///< for people: rank, host, state
  };
  /// After `equal` said no. Collective; the same on all ranks.
  [[nodiscard]] Finding majority();

  /// All ranks: remembers the states as they are, and sets them to the copy; for the caller to compute the steps since
  /// once more.
  void go_back();
  /// After that, who was farther from what came out. Collective; the same on all ranks.
  [[nodiscard]] Finding judge();

  [[nodiscard]] std::size_t bytes() const noexcept { return copy_.bytes(); }

 private:
  void hash_states();
  [[nodiscard]] Finding accuse(std::vector<int> ranks, const std::string& state) const;

  Communicator communicator_;
  ComputeDevice device_;
  std::vector<State> states_;                ///< the replicated ones: those of the device, then those of the host
  std::size_t over_there_;                   ///< how many are the device's
  std::unique_ptr<DeviceHash> device_hash_;  ///< of these; null where there are none
  std::vector<std::uint64_t> hashes_;        ///< by state
  Buffer words_;  ///< a hash of all, and its complement: their minima tell of the maximum too
  std::unique_ptr<Collective> minimum_;
  StateCopy copy_;
  std::optional<StateCopy> suspects_;
};

}  // namespace ronda
