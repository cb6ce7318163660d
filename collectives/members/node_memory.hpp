#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/host/node/copies.hpp>
#include <ronda/collectives/members/shared_memory.hpp>
#include <ronda/collectives/host/reduction.hpp>
#include <ronda/collectives/members/agreement.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

/// What MPI may still want of the shared memory file system for its own queues.
inline constexpr std::size_t kept_for_mpi = std::size_t{16} << 20;

/// Memory that the ranks of a node share, and where tensors lie in it. Every function is collective unless it says
/// otherwise.
class NodeMemory {
 public:
  /// @param members, agreement  outlive this object
  NodeMemory(Members& members, Agreement& agreement) : members_(members), agreement_(agreement) {}

  /// Zeroed, not `on_device`: private where the nodes have no room, or no two ranks; see
  /// Communicator::allocate. Throws where ranks ask for different memory, or one has none.
  [[nodiscard]] Buffer allocate(std::size_t bytes, Memory memory);
  /// On every node, or on none.
  /// @param keep_free  of the file system, for others
  /// @param one        once on a node, not once for each rank
  [[nodiscard]] std::shared_ptr<SharedMemory> take(std::size_t bytes, std::size_t keep_free, std::string& refusal,
                                                   bool one = false);
  /// What barriers are made of, for each of so many tensors; none, on all ranks, where there is no room.
  [[nodiscard]] std::shared_ptr<SharedMemory> take_barriers(std::size_t tensors, std::string& refusal);

  /// Where a tensor lies on this rank's node.
  struct Site {
    std::shared_ptr<SharedMemory> memory;  ///< null unless it is in shared memory on all ranks of the group
    std::vector<std::uint64_t> offsets;    ///< in the segments of the node's ranks
  };
  /// A tensor has a site in shared memory where all ranks took it from the same `allocate`.
  [[nodiscard]] std::vector<Site> locate(std::span<const Elements> tensors);
  /// Whether the elements lie in memory from `allocate` with one copy per node. Not collective.
  [[nodiscard]] bool is_one_a_node(const Elements& elements) const {
    const Allocation* const allocation = elements.count > 0 ? find(elements) : nullptr;
    return allocation != nullptr && allocation->one;
  }
  /// Throws LogicError if they do. For collectives that need elements of each rank's own. Not collective.
  void require_own(const Elements& elements, const std::string& label) const;
  /// Whether it is memory from `allocate`. Not collective.
  [[nodiscard]] bool contains(const Elements& elements) const { return find(elements) != nullptr; }

  /// All ranks' copies of a tensor, with the barriers number `index`; none where it has no site. Not collective.
  [[nodiscard]] NodeCopies copies_of(const Elements& elements, const Site& site,
                                     const std::shared_ptr<SharedMemory>& barriers, std::size_t index) const;
  /// Where the copies begin, by rank on the node; empty where it has no site. Not collective.
  [[nodiscard]] std::vector<std::byte*> places_of(const Site& site) const;

 private:
  /// Memory from `allocate`; all ranks give the same memory the same number.
  struct Allocation {
    std::uint64_t number;
    std::weak_ptr<SharedMemory> memory;
    bool one;  ///< once on a node
  };
  [[nodiscard]] const Allocation* find(const Elements& elements) const;

  Members& members_;
  Agreement& agreement_;
  std::uint64_t made_ = 0;
  bool fell_back_ = false;  ///< to private memory, with a note: the next refusal needs none
  std::vector<Allocation> allocations_;
};

}  // namespace ronda
