#pragma once
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace ronda {

class FabricChannels;

/// Keeps the messages of a transport apart from all others between the same ranks. This process counts the number as
/// in use while a copy of the channel exists.
class FabricChannel {
 public:
  /// A number that is not counted.
  explicit FabricChannel(std::uint32_t number = 0) noexcept : number_(number) {}
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

 private:
  friend class FabricChannels;
  FabricChannel(std::uint32_t number, std::shared_ptr<const void> lease) noexcept
      : number_(number), lease_(std::move(lease)) {}

  std::uint32_t number_;
  std::shared_ptr<const void> lease_;  ///< its end frees the number
};

/// The channels of a world, and which of them this process uses. Ranks destroy their collectives at different times, so
/// ranks that need channels merge their `State`s first, and then all `take` the same numbers.
///
/// Numbers are taken in ascending order and start again at 0 after the last one. So a number that becomes free is
/// taken again as late as possible.
class FabricChannels : public std::enable_shared_from_this<FabricChannels> {
 public:
  static constexpr std::size_t most = 32768;  ///< MPI guarantees as many tags

  struct State {
    std::uint64_t next = 1;       ///< the search begins at `next` % `most`
    std::bitset<most> in_use{1};  ///< by number; the first is the world's own, for its beginning and end

    /// Marks a channel as in use if either process uses it. Both spans hold a State.
    static void merge(std::span<std::byte> mine, std::span<const std::byte> other) noexcept;
  };

  [[nodiscard]] State state() const;
  /// The next `count` channels that are free in `merged`; fewer if there are not so many.
  [[nodiscard]] std::vector<FabricChannel> take(const State& merged, std::size_t count);

 private:
  [[nodiscard]] FabricChannel lease(std::uint32_t number);

  mutable std::mutex door_;  ///< the engine's thread frees numbers
  State state_;
};

}  // namespace ronda
