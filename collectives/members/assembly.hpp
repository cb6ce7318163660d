#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/fabric/fabric.hpp>
#include <ronda/collectives/host/algorithms/tree_merge.hpp>
#include <ronda/collectives/host/engine/engine.hpp>
#include <ronda/collectives/watch/recorder.hpp>

namespace ronda {

/// Ranks that exchange small values, to set something up: by messages that the engine moves with all others. So a rank
/// that waits here still does its part of other collectives, and the watchdog can end the wait.
///
/// Functions are collective over the ranks unless they say otherwise. Nothing here is for the step: each call takes
/// memory and plans its messages anew.
class Assembly {
 public:
  /// Not collective.
  /// @param ranks    of the world, the same list on all of them; this rank is one
  /// @param channel  see Fabric::open
  Assembly(std::shared_ptr<Engine> engine, Ranks ranks, FabricChannel channel);

  /// Some of these ranks, on the same channel: the two are used one after the other. Not collective.
  [[nodiscard]] Assembly of(Ranks some) const;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(ranks_->size()); }
  [[nodiscard]] const Ranks& ranks() const noexcept { return ranks_; }  ///< of the world
  [[nodiscard]] const std::shared_ptr<Engine>& engine() const noexcept { return engine_; }

  /// Names the place of the program for the calls that follow; ranks at different places get a CommunicationError. Not
  /// collective.
  void at(std::string_view place) { place_ = place; }

  void barrier();
  /// True if `mine` is true on every rank.
  [[nodiscard]] bool all(bool mine);
  void broadcast(std::span<std::byte> bytes, int root);
  /// Each rank's `mine`, by rank.
  template <class T>
  [[nodiscard]] std::vector<T> gather(const T& mine) {
    return gather_values(std::span(&mine, 1));
  }
  template <class T>
  [[nodiscard]] std::vector<T> gather(const std::vector<T>& mine) {
    return gather_values(std::span(mine));
  }
  [[nodiscard]] std::vector<std::string> gather_texts(std::string_view mine);
  /// From each rank its value for this one. @param mine  one value per rank
  template <class T>
  [[nodiscard]] std::vector<T> alltoall(std::vector<T> mine) {
    std::vector<T> all(mine.size());
    exchange(std::as_writable_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), sizeof(T));
    return all;
  }
  /// Combines the ranks' blocks of one length into one that all ranks get. Takes two blocks of memory, however many
  /// ranks there are.
  void merge(std::span<std::byte> block, TreeMerge::Merge merge);

 private:
  template <class T>
  [[nodiscard]] std::vector<T> gather_values(std::span<const T> mine) {
    std::vector<T> all(mine.size() * ranks_->size());
    gather_bytes(std::as_bytes(mine), std::as_writable_bytes(std::span(all)),
                 std::vector<std::size_t>(ranks_->size(), mine.size_bytes()));
    return all;
  }
  /// @param bytes  by rank: `mine` has this rank's number, `all` their sum; the same on all ranks
  void gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all, const std::vector<std::size_t>& bytes);
  void exchange(std::span<std::byte> mine, std::span<std::byte> all, std::size_t value_bytes);
  [[nodiscard]] std::unique_ptr<Transport> open() { return engine_->fabric().open(ranks_, channel_); }
  /// Keeps the algorithm, which has run.
  [[nodiscard]] std::unique_ptr<Collective> done(std::unique_ptr<Algorithm> algorithm);

  std::shared_ptr<Engine> engine_;
  Ranks ranks_;
  FabricChannel channel_;
  int rank_;
  Ledger ledger_;  ///< records nothing: callers do
  std::string place_;
  std::uint64_t gatherings_ = 0;
};

}  // namespace ronda
