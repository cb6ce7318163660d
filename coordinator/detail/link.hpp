#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/reduce_op.hpp>
#include <ronda/core/dtype.hpp>

namespace ronda {

/// What a coordinator needs of the other ranks, and how it gets it: a communicator, or threads in tests. Used by one
/// thread. Every function that is not const is collective, but for `stage` and `take_notes`, in the same order on all
/// ranks, and throws what the communicator does.
class CoordinatorLink {
 public:
  /// How many fused batches are under way at once: one is filled while another is reduced.
  static constexpr int stages = 2;
  /// Of blocks that are merged; any announcement fits a large one, whatever ranks say it.
  static constexpr std::size_t small_block = 1024;
  [[nodiscard]] std::size_t large_block() const noexcept {
    return (std::size_t{64} << 10) + 4 * static_cast<std::size_t>(size());
  }

  virtual ~CoordinatorLink() = default;
  [[nodiscard]] virtual int rank() const noexcept = 0;
  [[nodiscard]] virtual int size() const noexcept = 0;
  /// `rank 2 on node17`, as it is called in the world.
  [[nodiscard]] virtual std::string name_of_rank(int rank) const = 0;

  /// Every word becomes what all ranks' have in common, bit by bit. As many words on every rank.
  /// @param eager  whether this rank has something to wait for: it then looks again and again before it sleeps
  virtual void intersect(std::span<std::uint64_t> words, bool eager) = 0;
  /// `block`, of announcements, becomes what all ranks' blocks make together: the same on all. small_block or
  /// large_block bytes, as many on every rank.
  virtual void merge(std::span<std::byte> block) = 0;

  /// Memory to reduce in.
  [[nodiscard]] virtual std::span<std::byte> stage(int index) = 0;
  /// Starts to reduce the first `bytes` of a stage; bytes after these may be reduced, too.
  virtual void start(int stage, ReduceOp op, DType dtype, std::size_t bytes) = 0;
  /// Returns when it is done.
  virtual void finish(int stage) = 0;

  /// What it fell back from, a line each, since the last call. Not collective.
  [[nodiscard]] virtual std::vector<std::string> take_notes() { return {}; }

  /// A link among the ranks that give the same colour, ordered by (key, rank).
  virtual std::unique_ptr<CoordinatorLink> split(int color, int key) = 0;
};

}  // namespace ronda
