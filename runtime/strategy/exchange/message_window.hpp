#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/stream.hpp>

namespace ronda {

/// The messages that a rank has with many others in each step, of which few are under way at a time: what is planned
/// and kept for them does not grow with the ranks. Where all may be under way, they stay planned; else each is planned
/// when its turn comes. A rank that is late holds up its own messages, and in the end those of others: one message
/// after the other waits for it in a place.
class MessageWindow {
 public:
  static constexpr std::size_t most = 16;  ///< under way

  /// Not collective.
  /// @param count  messages of a step; those with one rank are started in the order in which that starts them
  /// @param make   plans the message of this number: a send, or a receive. Called again and again, as long as this
  /// lives
  MessageWindow(Communicator communicator, std::size_t count,
                std::function<std::unique_ptr<Collective>(std::size_t number)> make);

  /// Starts the first ones.
  void start(Stream& stream);
  /// Starts the others, and returns when all are done. To the stream's end before `start`, for what is sent.
  void wait();
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

 private:
  struct Place {
    std::unique_ptr<Collective> message = {};
    Event done = {};
    bool under_way = false;
  };
  /// Whether all are done.
  [[nodiscard]] bool move_on();
  void start_next(Place& place);
  [[nodiscard]] bool stay_planned() const noexcept { return count_ <= most; }

  Communicator communicator_;
  std::size_t count_, next_ = 0, done_ = 0;
  std::function<std::unique_ptr<Collective>(std::size_t)> make_;
  std::vector<Place> places_;
  Event ready_;  ///< of what is sent
};

}  // namespace ronda
