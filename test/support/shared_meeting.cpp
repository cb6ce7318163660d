#include "support/shared_meeting.hpp"

#include <ronda/core/error.hpp>
#include <ronda/core/tensor.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace ronda::test {

/// Each word is the last turn that its rank has come to.
struct SharedMeeting::Place {
  alignas(64) std::uint64_t written;
  alignas(64) std::uint64_t read;
  std::uint64_t size;
  char text[most];
};

SharedMeeting::SharedMeeting(Communicator communicator)
    : memory_(communicator.allocate(sizeof(Place), Memory::node_shared)),
      own_(reinterpret_cast<Place*>(memory_.data())) {
  const Tensor all({Shape{std::int64_t{sizeof(Place)}}, DType::uint8, {}}, memory_.data());
  for (std::byte* copy : communicator.copies_on_node(all)) places_.push_back(reinterpret_cast<Place*>(copy));
  if (places_.empty()) places_ = {own_};
  if (places_.size() != static_cast<std::size_t>(communicator.size()))
    throw ResourceError("the ranks have no memory to meet in: more room in /dev/shm, or a common host, is needed");
}

bool SharedMeeting::wait(std::uint64_t& word, std::uint64_t turn) const {
  for (int look = 0; std::atomic_ref(word).load(std::memory_order_acquire) < turn; ++look) {
    if (abandoned_) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(look < 100 ? 0 : 100));
  }
  return true;
}

std::vector<std::string> SharedMeeting::gather(std::string_view text) {
  if (text.size() > most)
    throw LogicError("a text of " + std::to_string(text.size()) + " bytes is too long to meet by");
  ++turn_;
  for (Place* place : places_)
    if (!wait(place->read, turn_ - 1)) return {};
  text.copy(own_->text, text.size());
  own_->size = text.size();
  std::atomic_ref(own_->written).store(turn_, std::memory_order_release);
  std::vector<std::string> all;
  for (Place* place : places_) {
    if (!wait(place->written, turn_)) return {};
    all.emplace_back(place->text, place->size);
  }
  std::atomic_ref(own_->read).store(turn_, std::memory_order_release);
  return all;
}

}  // namespace ronda::test
