#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ronda/collectives/host/node/touch_pages.hpp>
#include <ronda/collectives/host/task.hpp>
#include <ronda/collectives/host/transport/traffic.hpp>

namespace ronda {

/// A rank's line in memory that all ranks of a node see: how many barriers it has come to, and room for the little that
/// it brings along: who looks whether it has come, has that in the same cache line. Two lines apart from the next,
/// because processors fetch lines in pairs.
struct alignas(128) BarrierLine {
  std::uint64_t arrivals = 0;
  std::array<std::byte, 376> room{};
};

/// Where the ranks of a node wait for one another: each writes its own line and reads the others'. What a rank wrote
/// before it came is seen by all that have gone on.
class NodeBarrier final : public Awaitable, public Traffic {
 public:
  /// @param lines  one a rank, zeroed before the first use, in reach of all; outlive this object
  /// @param rank   this rank's place among them
  /// @param names  what the ranks are called outside, by line; empty: as here
  NodeBarrier(std::span<BarrierLine* const> lines, int rank, std::span<const int> names = {})
      : lines_(lines), names_(names), rank_(static_cast<std::size_t>(rank)) {
    for (const BarrierLine* line : lines_) touch_pages(std::as_bytes(std::span(line, 1)));
  }

  /// This rank is here; `co_await` of the barrier then goes on when all are.
  void arrive() noexcept {
    next_ = 0;
    std::atomic_ref(lines_[rank_]->arrivals).store(++arrivals_, std::memory_order_release);
  }

  bool arrived() noexcept override {
    while (next_ < lines_.size() &&
           std::atomic_ref(lines_[next_]->arrivals).load(std::memory_order_acquire) >= arrivals_)
      ++next_;
    return next_ == lines_.size();
  }

  [[nodiscard]] std::vector<int> missing() override {
    std::vector<int> missing;
    for (std::size_t line = 0; line < lines_.size(); ++line)
      if (std::atomic_ref(lines_[line]->arrivals).load(std::memory_order_acquire) < arrivals_)
        missing.push_back(names_.empty() ? static_cast<int>(line) : names_[line]);
    return missing;
  }

  [[nodiscard]] Open open() noexcept override { return {}; }
  /// This rank has not come after all: the others must not go on to work on what it may have freed.
  void take_back() noexcept override {
    if (arrivals_ > 0) std::atomic_ref(lines_[rank_]->arrivals).store(arrivals_ - 1, std::memory_order_release);
  }

 private:
  std::span<BarrierLine* const> lines_;
  std::span<const int> names_;
  std::size_t rank_;
  std::size_t next_ = 0;        ///< the first rank not yet seen
  std::uint64_t arrivals_ = 0;  ///< of this rank
};

}  // namespace ronda
