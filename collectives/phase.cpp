#include <ronda/collectives/group/group.hpp>
#include <ronda/collectives/phase.hpp>

#include <array>

namespace ronda {
namespace {

constexpr double longer_than_a_collective = 10;

}  // namespace

std::string_view name_of(Activity activity) noexcept {
  constexpr std::array<std::string_view, 6> names{"running",    "starting", "planning",
                                                  "evaluating", "writing",  "reading"};
  const auto index = static_cast<std::size_t>(activity);
  return index < names.size() ? names[index] : "?";
}

Phase::Phase(const Communicator& communicator, Activity activity, double limit)
    : recorder_(communicator.group().members().ledger().recorder) {
  if (recorder_ == nullptr) return;
  const RecordHead& head = recorder_->file().head;
  before_ = Recorder::get(head.activity);
  since_before_ = Recorder::get(head.activity_since);
  limit_before_ = Recorder::get(head.activity_limit);
  const double seconds =
      limit > 0 ? limit : longer_than_a_collective * communicator.group().members().engine()->timeout();
  recorder_->set_activity(activity, static_cast<std::uint64_t>(seconds * 1e3), recorder_->ticks());
}

Phase::~Phase() {
  if (recorder_ != nullptr) recorder_->set_activity(static_cast<Activity>(before_), limit_before_, since_before_);
}

}  // namespace ronda
