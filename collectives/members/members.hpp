#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ronda/collectives/host/engine/engine.hpp>
#include <ronda/collectives/host/transport/mpi.hpp>
#include <ronda/collectives/members/placement.hpp>
#include <ronda/collectives/watch/recorder.hpp>

namespace ronda {

class MpiOperations;

/// What a world decides for all groups in it.
struct GroupLimits {
  std::shared_ptr<const MpiOperations> mpi_operations;
  int ranks_per_node = 0;  ///< see WorldOptions
  std::size_t shared_memory = std::numeric_limits<std::size_t>::max();
  bool oversubscribed = false;
  bool any_thread = false;  ///< MPI may be called by any thread, one at a time; the same on all ranks
  int world_size = 1;
  std::uint64_t priority = 0;  ///< of this world before others of the same processes: see MpiTurn::reserve
};

/// The ranks of a group: their MPI communicator, where they run, what they are called, and how their collectives are
/// counted. What agrees, plans or measures for a group keeps a reference to this; planned collectives keep it alive.
class Members {
 public:
  /// Collective over `communicator`.
  Members(std::shared_ptr<Engine> engine, mpi::Communicator communicator, const GroupLimits& limits, Ledger ledger);
  Members(const Members&) = delete;
  ~Members();  ///< not collective

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] const Topology& topology() const noexcept { return placement_.topology; }
  /// By node, both in ascending order.
  [[nodiscard]] const std::vector<std::vector<int>>& ranks_of_node() const noexcept { return placement_.ranks_of_node; }
  [[nodiscard]] const std::vector<int>& ranks_on_this_node() const noexcept {
    return placement_.ranks_of_node[static_cast<std::size_t>(topology().node)];
  }
  [[nodiscard]] bool is_whole_world() const noexcept { return size_ == limits_.world_size; }
  /// `rank 2`, as it is called in the world, of this group's rank of that number.
  [[nodiscard]] std::string number_of_rank(std::size_t rank) const;
  [[nodiscard]] std::string name_of_rank(std::size_t rank) const;  ///< likewise `rank 2 on node17`

  [[nodiscard]] mpi::Communicator& all() noexcept { return all_; }
  [[nodiscard]] mpi::Communicator& on_node() noexcept { return placement_.node; }
  /// For MPI's own collectives, which it takes in one order on all ranks, whatever else goes over `all`. Empty until
  /// Links has made it.
  [[nodiscard]] mpi::Communicator& for_plain_mpi() noexcept { return plain_mpi_; }
  [[nodiscard]] const std::shared_ptr<Engine>& engine() const noexcept { return engine_; }
  [[nodiscard]] Ledger& ledger() noexcept { return ledger_; }
  [[nodiscard]] const GroupLimits& limits() const noexcept { return limits_; }

  /// What planning fell back from, a line each: see Communicator::take_notes.
  void add_note(std::string note) { notes_.push_back(std::move(note)); }
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }

 private:
  std::shared_ptr<Engine> engine_;
  Ledger ledger_;
  mpi::Communicator all_, plain_mpi_;
  GroupLimits limits_;
  Placement placement_;
  int rank_, size_;
  std::vector<std::string> notes_;
};

}  // namespace ronda
