#pragma once
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ronda/collectives/host/engine/engine.hpp>
#include <ronda/collectives/members/assembly.hpp>
#include <ronda/collectives/members/channel_reserve.hpp>
#include <ronda/collectives/members/placement.hpp>
#include <ronda/collectives/watch/recorder.hpp>
#include <ronda/core/message.hpp>

namespace ronda {

/// What a world decides for all groups in it.
struct GroupLimits {
  std::shared_ptr<FabricChannels> channels;
  int ranks_per_node = 0;  ///< see WorldOptions
  std::size_t shared_memory = std::numeric_limits<std::size_t>::max();
  bool oversubscribed = false;
  bool any_thread = false;  ///< any thread may communicate, one at a time; the same on all ranks
  int world_size = 1;
};

/// The ranks of a group: where they run, how they exchange small values, their names, and how their collectives are
/// counted. Classes that agree, plan or measure for a group keep a reference to this; planned collectives keep it
/// alive.
class Members {
 public:
  /// Collective over the ranks of `founding`: no other rank takes part.
  Members(Assembly& founding, const GroupLimits& limits, Ledger ledger);
  Members(const Members&) = delete;

  [[nodiscard]] int rank() const noexcept { return all_.rank(); }
  [[nodiscard]] int size() const noexcept { return all_.size(); }
  [[nodiscard]] const Topology& topology() const noexcept { return placement_.topology; }
  /// By node, both in ascending order.
  [[nodiscard]] const std::vector<std::vector<int>>& ranks_of_node() const noexcept { return placement_.ranks_of_node; }
  [[nodiscard]] const std::vector<int>& ranks_on_this_node() const noexcept {
    return placement_.ranks_of_node[static_cast<std::size_t>(topology().node)];
  }
  /// Ranks of the group, as they are called in the world.
  [[nodiscard]] Ranks world_ranks(const std::vector<int>& ranks) const;
  [[nodiscard]] bool is_whole_world() const noexcept { return size() == limits_.world_size; }
  /// `rank 2`, as it is called in the world, of this group's rank of that number.
  [[nodiscard]] std::string number_of_rank(std::size_t rank) const;
  [[nodiscard]] std::string name_of_rank(std::size_t rank) const;  ///< likewise `rank 2 on node17`

  [[nodiscard]] Fabric& fabric() const noexcept { return engine_->fabric(); }
  [[nodiscard]] ChannelReserve& channels() noexcept { return channels_; }
  [[nodiscard]] Assembly& all() noexcept { return all_; }
  [[nodiscard]] Assembly& on_node() noexcept { return on_node_; }
  /// Null until Links has made it.
  [[nodiscard]] std::unique_ptr<FabricAllreduces>& fabric_allreduces() noexcept { return fabric_allreduces_; }
  [[nodiscard]] const std::shared_ptr<Engine>& engine() const noexcept { return engine_; }
  [[nodiscard]] Ledger& ledger() noexcept { return ledger_; }
  [[nodiscard]] const GroupLimits& limits() const noexcept { return limits_; }

  /// What planning fell back from, a line each: see Communicator::take_notes.
  void add_note(Message note) { notes_.push_back(std::move(note)); }
  std::vector<Message> take_notes() { return std::exchange(notes_, {}); }

 private:
  std::shared_ptr<Engine> engine_;
  Ledger ledger_;
  GroupLimits limits_;
  Placement placement_;
  ChannelReserve channels_;
  Assembly all_, on_node_;
  std::unique_ptr<FabricAllreduces> fabric_allreduces_;
  std::vector<Message> notes_;
};

}  // namespace ronda
