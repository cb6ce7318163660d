#include <ronda/runtime/strategy/parameter_server/message_window.hpp>

#include <algorithm>
#include <utility>

namespace ronda {

MessageWindow::MessageWindow(Communicator communicator, const std::vector<std::size_t>& counts, Make make)
    : communicator_(std::move(communicator)), make_(std::move(make)), lanes_(counts.size()) {
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    lanes_[lane].count = lanes_[lane].started = lanes_[lane].done = counts[lane];
    if (!lanes_[lane].stays_planned()) continue;
    for (std::size_t number = 0; number < counts[lane]; ++number)
      lanes_[lane].places.push_back({.message = make_(lane, number)});
  }
}

void MessageWindow::start(Stream& stream, std::size_t released) {
  for (Lane& lane : lanes_) {
    lane.started = lane.done = 0;
    lane.places.resize(std::min(lane.count, most));
  }
  release_in_all(released, stream);
}

void MessageWindow::release(std::size_t lane, std::size_t count, Stream& stream) {
  ready_ = stream.record();
  lanes_[lane].released = count;
  start_next(lane);
}

void MessageWindow::release_in_all(std::size_t count, Stream& stream) {
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) release(lane, count, stream);
}

/// As many as may be under way.
void MessageWindow::start_next(std::size_t number_of_lane) {
  Lane& lane = lanes_[number_of_lane];
  const std::size_t end = std::min({lane.count, lane.released, lane.done + lane.places.size()});
  for (; lane.started < end; ++lane.started) {
    Place& place = lane.place_of(lane.started);
    if (!lane.stays_planned()) place.message = make_(number_of_lane, lane.started);
    place.done = place.message->start(ready_);
  }
}

bool MessageWindow::move_on(std::size_t number_of_lane) {
  Lane& lane = lanes_[number_of_lane];
  while (lane.done < lane.started && lane.place_of(lane.done).done.ready()) {
    if (!lane.stays_planned()) lane.place_of(lane.done).message.reset();
    ++lane.done;
  }
  start_next(number_of_lane);
  return lane.done == lane.count;
}

bool MessageWindow::move_on() {
  bool all_done = true;
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) all_done = move_on(lane) && all_done;
  return all_done;
}

void MessageWindow::wait() {
  if (!move_on()) communicator_.wait_until([&] { return move_on(); });
}

std::size_t MessageWindow::done_in_all() const noexcept {
  std::size_t fewest = all;
  for (const Lane& lane : lanes_) fewest = std::min(fewest, lane.done);
  return fewest;
}

}  // namespace ronda
