#include <ronda/runtime/strategy/exchange/message_window.hpp>

#include <algorithm>
#include <utility>

namespace ronda {

MessageWindow::MessageWindow(Communicator communicator, std::size_t count,
                             std::function<std::unique_ptr<Collective>(std::size_t)> make)
    : communicator_(std::move(communicator)), count_(count), make_(std::move(make)), places_(std::min(count, most)) {
  for (std::size_t i = 0; i < places_.size() && stay_planned(); ++i) places_[i].message = make_(i);
}

void MessageWindow::start(Stream& stream) {
  ready_ = stream.record();
  next_ = done_ = 0;
  for (Place& place : places_) start_next(place);
}

void MessageWindow::start_next(Place& place) {
  if (!stay_planned()) place.message = make_(next_);
  ++next_;
  place.done = place.message->start(ready_);
  place.under_way = true;
}

bool MessageWindow::move_on() {
  for (Place& place : places_) {
    if (!place.under_way || !place.done.ready()) continue;
    place.under_way = false;
    ++done_;
    if (!stay_planned()) place.message.reset();
    if (next_ < count_) start_next(place);
  }
  return done_ == count_;
}

void MessageWindow::wait() {
  if (count_ > 0) communicator_.wait_until([&] { return move_on(); });
}

}  // namespace ronda
