#include <ronda/collectives/watch/host_voice.hpp>
#include <ronda/collectives/watch/neighbours.hpp>

namespace ronda {
namespace {

constexpr double between_letters = 0.3;
/// Other hosts are greeted a few times, at growing distances: the first letters may be lost.
constexpr double first_greetings = 0.3, last_greetings = 3;
/// An alarm of another host that is older than this is over.
constexpr double fresh = 2;

}  // namespace

void HostVoice::listen(double now) {
  if (channel_ != nullptr) channel_->receive(now);
}

bool HostVoice::heard_alarm(double now) const noexcept {
  return channel_ != nullptr && now - channel_->alarmed_at() < fresh;
}

std::optional<int> HostVoice::lowest_alarmed(double now) const {
  return channel_ == nullptr ? std::nullopt : channel_->lowest_alarmed(now - silence);
}

void HostVoice::describe(int rank, double now, RankReport& report) const {
  using Answer = RankReport::Answer;
  const auto* heard = channel_ == nullptr ? nullptr : channel_->heard(rank);
  if (heard == nullptr) return;
  const RankStatus& status = heard->state.status;
  report.state = heard->state;
  if (status.dead || status.stopped)
    report.answer = status.dead ? Answer::dead : Answer::stopped;
  else if (now - heard->at < silence)
    report.answer = Answer::yes;
}

std::vector<int> HostVoice::unheard() const { return channel_ == nullptr ? std::vector<int>() : channel_->unheard(); }

void HostVoice::talk(double now, Part part, bool tells, FunctionRef<std::vector<RankState>()> states) {
  if (channel_ == nullptr) return;
  const bool speaks = part == Part::speaks;
  if (speaks && !spoke_) next_greeting_ = now, greeting_gap_ = first_greetings;
  spoke_ = speaks;
  if (part == Part::silent) return;
  if (tells && now - told_at_ >= between_letters) {
    told_at_ = now;
    const std::vector<RankState> all = states();
    std::vector<RankStatus> statuses;
    for (const RankState& state : all) statuses.push_back(state.status);
    channel_->tell(statuses);
    for (const RankState& state : all) channel_->tell_trail(state, now);
  } else if (now >= next_greeting_ && greeting_gap_ <= last_greetings) {
    next_greeting_ = now + greeting_gap_;
    greeting_gap_ *= 2;
    channel_->say_hello();
  }
}

void HostVoice::say_over() {
  for (int times = 0; times < 3 && channel_ != nullptr; ++times) channel_->say_over();
}

}  // namespace ronda
