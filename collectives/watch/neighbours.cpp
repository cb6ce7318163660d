#include <ronda/collectives/watch/neighbours.hpp>

#include <algorithm>
#include <utility>

namespace ronda {

Neighbours::Neighbours(std::shared_ptr<Recorder> recorder)
    : recorder_(std::move(recorder)),
      rank_(recorder_->file().head.rank),
      paths_(static_cast<std::size_t>(recorder_->file().head.size)),
      views_(paths_.size()) {
  for (std::size_t rank = 0; rank < paths_.size(); ++rank)
    paths_[rank] = record_path(recorder_->folder(), static_cast<int>(rank)).string();
}

void Neighbours::meet(int size, const std::map<int, std::string>& here) {
  met_ = true;
  rank_ = recorder_->file().head.rank;
  paths_.assign(static_cast<std::size_t>(size), {});
  for (const auto& [rank, path] : here) paths_[static_cast<std::size_t>(rank)] = path;
  views_.clear();
  views_.resize(paths_.size());
}

/// What the launcher calls two jobs may be the same, or be unknown; the number that its ranks have agreed on is its
/// own.
bool Neighbours::is_of_this_job(const RecordHead& head) const noexcept {
  const RecordHead& own = recorder_->file().head;
  return met_ ? Recorder::get(head.job) == Recorder::get(own.job) : head.launch == own.launch && head.host == own.host;
}

void Neighbours::find() {
  for (std::size_t rank = 0; rank < paths_.size(); ++rank) {
    if (static_cast<int>(rank) == rank_ || views_[rank] != nullptr || paths_[rank].empty()) continue;
    auto view = RecordView::open(paths_[rank]);
    if (view == nullptr || !is_of_this_job(view->head()) || (!met_ && view->abandoned())) continue;
    views_[rank] = std::move(view);
  }
}

void Neighbours::refresh() {
  for (const View& view : views_)
    if (view != nullptr) view->refresh();
}

bool Neighbours::lives(const View& view) const {
  if (view == nullptr) return false;
  const auto own = static_cast<std::int64_t>(Recorder::get(recorder_->file().head.last.nanoseconds));
  return 1e-9 * static_cast<double>(own - static_cast<std::int64_t>(view->head().last.nanoseconds)) < silence;
}

void Neighbours::describe(int rank, RankReport& report) {
  using Answer = RankReport::Answer;
  const View& view = views_[static_cast<std::size_t>(rank)];
  report.state = view->state(looked_back);
  if (!report.state) return;
  report.state->status.rank = rank;
  report.answer = lives(view) ? Answer::yes : view->abandoned() ? Answer::dead : Answer::stopped;
}

bool Neighbours::ask() const {
  return std::ranges::any_of(views_, [](const View& view) {
    return view != nullptr && (view->head().alarmed != 0 || view->head().asked != 0);
  });
}

bool Neighbours::alarmed() const {
  return std::ranges::any_of(views_, [this](const View& view) { return lives(view) && view->head().alarmed != 0; });
}

bool Neighbours::over() const {
  return std::ranges::any_of(views_, [](const View& view) { return view != nullptr && view->head().over != 0; });
}

bool Neighbours::this_rank_speaks(bool alarmed) const {
  for (std::size_t rank = 0; rank < views_.size(); ++rank) {
    if (!lives(views_[rank])) continue;
    const bool lower = static_cast<int>(rank) < rank_;
    const bool has_alarm = views_[rank]->head().alarmed != 0;
    if (has_alarm && (!alarmed || lower)) return false;
    if (!has_alarm && !alarmed && lower) return false;
  }
  return true;
}

void Neighbours::tell_over() const {
  for (std::size_t rank = 0; rank < views_.size(); ++rank)
    if (views_[rank] != nullptr) ronda::tell_over(paths_[rank], Recorder::get(recorder_->file().head.job));
}

}  // namespace ronda
