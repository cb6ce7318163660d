#include <ronda/runtime/key_value/detail/answers.hpp>

#include <utility>

namespace ronda {

void PushesAhead::answer(Worker& worker) {
  if (worker.bytes > bound_) return;
  for (const Asked& push : std::exchange(worker.held, {})) answers_.done(push);
}

std::vector<Asked> PushesAhead::take_held() {
  std::vector<Asked> all;
  for (Worker& worker : of_)
    for (const Asked& push : std::exchange(worker.held, {})) all.push_back(push);
  return all;
}

Message PushesAhead::why_held() const {
  for (std::size_t i = 0; i < of_.size(); ++i)
    if (!of_[i].held.empty())
      return "worker " + std::to_string(i) + " has pushed " + std::to_string(of_[i].bytes) +
             " bytes for later updates, more than " + setting("ahead_bytes", bound_);
  return {};
}

}  // namespace ronda
