#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include <ronda/collectives/host/algorithms/ring.hpp>
#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/transport/transport.hpp>
#include <ronda/core/buffer.hpp>

namespace ronda {

/// Measures what messages cost, by sending them as the algorithms do: both directions busy, all ranks at once.
class LinkProbe final : public Algorithm {
 public:
  enum class Pattern : std::uint8_t {
    exchange,  ///< one message with the rank half the world away, as RecursiveHalving's first step; others rest
    flow,      ///< to the right and from the left, `Ring::most_lanes` messages under way all the time
  };

  /// @param clock  seconds; a simulator has a clock of its own
  LinkProbe(std::unique_ptr<Transport> transport, Pattern pattern, std::size_t largest_bytes,
            std::function<double()> clock);

  /// What the next run measures: `repetitions` of as many messages as are under way at a time, of `bytes` each, after
  /// `uncounted` others, which bring the ranks together and open TCP's windows; one at least. The same on all ranks.
  void set(std::size_t bytes, int uncounted, int repetitions) noexcept;

  Task run() override;
  void visit_traffic(const std::function<void(Traffic&)>& visit) override { visit(*transport_); }

  /// What a message of the last run took, in the mean over each of a few groups of them; 0 where this rank rested.
  static constexpr std::size_t groups = 3;
  using Seconds = std::array<double, groups>;
  [[nodiscard]] const Seconds& seconds() const noexcept { return seconds_; }

 private:
  void start(std::size_t lane);

  std::unique_ptr<Transport> transport_;
  std::function<double()> clock_;
  std::size_t lanes_;
  int to_, from_;
  std::size_t bytes_ = 0;
  int uncounted_ = 1, repetitions_ = 1;
  Buffer outbox_, inbox_;
  std::array<Request, Ring::most_lanes> outgoing_, incoming_;
  Seconds seconds_{};
};

}  // namespace ronda
