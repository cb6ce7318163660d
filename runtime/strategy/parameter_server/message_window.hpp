#pragma once
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/stream.hpp>

namespace ronda {

/// The messages that a rank has with others in each step, of which few are under way at a time: what is planned and
/// kept for them does not grow with their number. A *lane* is the messages with one other rank, in the order in which
/// that one starts them. Where all messages of a lane may be under way, they stay planned; else each is planned when
/// its turn comes. A rank that is late holds up its own lane alone.
class MessageWindow {
 public:
  static constexpr std::size_t most = 4;  ///< under way, of a lane
  static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
  using Make = std::function<std::unique_ptr<Collective>(std::size_t lane, std::size_t number)>;

  /// Not collective.
  /// @param counts  messages of a step, by lane
  /// @param make    plans a message: a send, or a receive. Called again and again, as long as this lives
  MessageWindow(Communicator communicator, const std::vector<std::size_t>& counts, Make make);

  /// Begins a step, with those messages that may go.
  /// @param released  as many of each lane may go until `release` says more
  void start(Stream& stream, std::size_t released = all);
  /// From here on the first `count` of the lane may go. In the order of the stream, for what is sent.
  void release(std::size_t lane, std::size_t count, Stream& stream);
  /// The same of each lane.
  void release_in_all(std::size_t count, Stream& stream);
  /// Starts what may go next. Whether all messages of the step are done; before the first one, too.
  [[nodiscard]] bool move_on();
  /// Calls move_on until that says so; all are released.
  void wait();
  /// The messages of each lane before this one are done, as the last move_on saw.
  [[nodiscard]] std::size_t done_in_all() const noexcept;

 private:
  struct Place {
    std::unique_ptr<Collective> message = {};
    Event done = {};
  };
  /// Message n has the place n modulo the number of places.
  struct Lane {
    std::size_t count = 0;
    std::size_t released = 0, started = 0, done = 0;  ///< of a step, from its first on
    std::vector<Place> places = {};                   ///< made when they are needed
    [[nodiscard]] bool stays_planned() const noexcept { return count <= most; }
    [[nodiscard]] Place& place_of(std::size_t number) { return places[number % places.size()]; }
  };
  [[nodiscard]] bool move_on(std::size_t lane);
  void start_next(std::size_t lane);

  Communicator communicator_;
  Make make_;
  std::vector<Lane> lanes_;
  Event ready_;  ///< of what is sent
};

}  // namespace ronda
