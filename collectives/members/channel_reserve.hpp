#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <ronda/collectives/members/assembly.hpp>
#include <ronda/core/error.hpp>

namespace ronda {

/// FabricChannels that no rank of a group uses, the same ones in the same order on all of them: so ranks that take as
/// many take the same, without a message.
class ChannelReserve {
 public:
  /// Collective over the group.
  ChannelReserve(std::shared_ptr<FabricChannels> channels, Assembly& group) : channels_(std::move(channels)) {
    renew(group);
  }

  /// Replaces the channels that are left by others, which are free on all ranks. Collective over the group.
  void renew(Assembly& group) {
    free_.clear();
    FabricChannels::State state = channels_->state();
    group.merge(std::as_writable_bytes(std::span(&state, 1)), FabricChannels::State::merge);
    free_ = channels_->take(state, at_once);
    std::ranges::reverse(free_);
  }
  [[nodiscard]] bool empty() const noexcept { return free_.empty(); }
  [[nodiscard]] FabricChannel take() {
    if (empty())
      throw ResourceError("a world has as many groups and planned collectives as MPI has tags; destroy some first");
    FabricChannel next = std::move(free_.back());
    free_.pop_back();
    return next;
  }

 private:
  static constexpr std::size_t at_once = 64;

  std::shared_ptr<FabricChannels> channels_;
  std::vector<FabricChannel> free_;  ///< the next one last
};

}  // namespace ronda
