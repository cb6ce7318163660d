#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/host/task.hpp>
#include <ronda/collectives/reduce_op.hpp>
#include <ronda/core/clock.hpp>
#include <ronda/core/dtype.hpp>
#include <ronda/core/message.hpp>

namespace ronda {

/// A collective of a link from its start to its result. A task awaits it, by a variable's name: g++ 12 copies what a
/// call returns. A thread may wait for it meanwhile.
class LinkOperation : public Awaitable {
 public:
  /// Returns when it has arrived.
  virtual void wait() noexcept = 0;

 protected:
  ~LinkOperation() = default;
};

/// What a coordinator needs of the other ranks, and how it gets it: a communicator, or threads in tests. Used by one
/// thread. Every function that is not const is collective, except `stage` and `take_notes`, in the same order on all
/// ranks, and throws what the communicator does. At most one `intersect` or `merge` is in flight.
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
  /// The time by which the coordinator waits. Outlives the link.
  [[nodiscard]] virtual const Clock& clock() const noexcept { return steady_clock(); }
  /// `rank 2 on node17`, as it is called in the world.
  [[nodiscard]] virtual std::string name_of_rank(int rank) const = 0;

  /// Every word becomes what all ranks' have in common, bit by bit. As many words on every rank.
  /// @param eager  whether this rank has something to wait for: `wait` then looks again and again before it sleeps
  [[nodiscard]] virtual LinkOperation& intersect(std::span<std::uint64_t> words, bool eager) = 0;
  /// `block`, of announcements, becomes what all ranks' blocks make together: the same on all. small_block or
  /// large_block bytes, as many on every rank.
  [[nodiscard]] virtual LinkOperation& merge(std::span<std::byte> block) = 0;

  /// Memory to reduce in.
  [[nodiscard]] virtual std::span<std::byte> stage(int index) = 0;
  /// Starts to reduce the first `bytes` of a stage; bytes after these may be reduced, too. Waits for the other ranks if
  /// it has to plan the collective.
  virtual void start(int stage, ReduceOp op, DType dtype, std::size_t bytes) = 0;
  /// The reduction of a stage that was started.
  [[nodiscard]] virtual LinkOperation& reduction(int stage) = 0;

  /// What it fell back from, a line each, since the last call. Not collective.
  [[nodiscard]] virtual std::vector<Message> take_notes() { return {}; }

  /// A link among the ranks that give the same colour, ordered by (key, rank). Waits for the other ranks.
  virtual std::unique_ptr<CoordinatorLink> split(int color, int key) = 0;
};

}  // namespace ronda
