#include <ronda/core/text.hpp>
#include <ronda/runtime/trainer/hooks/shares.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>
#include <queue>
#include <utility>

namespace ronda {
namespace {

constexpr const char* shares_name = "shares";
/// Of the time of a step; what gains less may be chance.
constexpr double worth_dealing = 0.03;
/// Least that a micro-batch takes: no rank takes no time.
constexpr double least_seconds = 1e-9;

template <class Number>
Number mine_of(const std::vector<Number>& by_rank, TrainingRun& run) {
  return by_rank[static_cast<std::size_t>(run.world().rank())];
}

}  // namespace

std::vector<std::size_t> fastest_deal(std::span<const double> seconds, std::size_t all) {
  std::vector<std::size_t> counts(seconds.size(), 1);
  using Next = std::pair<double, std::size_t>;  // when a rank would be done with one more, and which
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
  for (std::size_t rank = 0; rank < seconds.size(); ++rank) next.emplace(2 * seconds[rank], rank);
  for (std::size_t dealt = seconds.size(); dealt < all; ++dealt) {
    const std::size_t rank = next.top().second;
    next.pop();
    ++counts[rank];
    next.emplace(static_cast<double>(counts[rank] + 1) * seconds[rank], rank);
  }
  return counts;
}

double longest(std::span<const double> seconds, std::span<const std::size_t> counts) {
  double most = 0;
  for (std::size_t rank = 0; rank < seconds.size(); ++rank)
    most = std::max(most, static_cast<double>(counts[rank]) * seconds[rank]);
  return most;
}

std::size_t Shares::all() const noexcept { return std::accumulate(counts_.begin(), counts_.end(), std::size_t{0}); }

void Shares::on_start(TrainingRun& run) {
  const std::size_t accumulate = run.options().accumulate;
  every_ = run.options().shares_every;
  std::vector<std::size_t> counts(static_cast<std::size_t>(run.world().size()), accumulate);
  const auto kept = run.kept_of(shares_name);
  const double sum = std::accumulate(kept.begin(), kept.end(), 0.0);
  if (kept.size() == counts.size() && sum == static_cast<double>(counts.size() * accumulate))
    std::ranges::transform(kept, counts.begin(), [](double count) { return static_cast<std::size_t>(count); });
  agree(run.world().communicator(), [&] { take(run, std::move(counts)); });
}

void Shares::after_step(TrainingRun& run, const StepReport& report) {
  measured_ += report.times.data + report.times.forward + report.times.backward;
  micro_batches_ += mine_of(counts_, run);
  if (report.step % every_ == 0) deal(run);
}

/// By the same numbers on all ranks, so that all come to the same.
void Shares::deal(TrainingRun& run) {
  const double now = std::max(measured_ / static_cast<double>(micro_batches_), least_seconds);
  const bool first = seconds_.empty();
  seconds_.resize(counts_.size());
  double mine = first ? now : (mine_of(seconds_, run) + now) / 2;  // a rank that has rested is faster for a while
  Communicator communicator = run.world().communicator();
  communicator.allgather(Tensor(std::span(&mine, 1)), Tensor(std::span(seconds_)));
  measured_ = 0;
  micro_batches_ = 0;
  std::vector<std::size_t> counts = fastest_deal(seconds_, all());
  if (longest(seconds_, counts) > (1 - worth_dealing) * longest(seconds_, counts_)) return;
  take(run, std::move(counts));
  ++deals_;
  run.sink().on_note(describe(run));
}

void Shares::take(TrainingRun& run, std::vector<std::size_t> counts) {
  counts_ = std::move(counts);
  const std::size_t first = std::accumulate(counts_.begin(), counts_.begin() + run.world().rank(), std::size_t{0});
  run.deal({first, mine_of(counts_, run), all()});
}

std::string Shares::describe(TrainingRun& run) const {
  const auto [least, most] = std::ranges::minmax_element(counts_);
  if (*least == *most) return "ranks share steps evenly again";
  const auto text_of = [&](auto place) {
    const auto rank = static_cast<std::size_t>(place - counts_.begin());
    return std::to_string(*place) + " on rank " + std::to_string(rank) + " on " +
           run.world().communicator().topology().hosts[rank] + formatted(" (%.3g ms each)", 1000 * seconds_[rank]);
  };
  const std::vector<std::size_t> equal(counts_.size(), run.options().accumulate);
  return "faster ranks take more of a step's " + std::to_string(all()) + " micro-batches: the least " + text_of(least) +
         ", the most " + text_of(most) +
         formatted("; a step computes for %.2f of the time of equal shares",
                   longest(seconds_, counts_) / longest(seconds_, equal));
}

void Shares::before_save(TrainingRun&, CheckpointManifest& manifest) {
  manifest.hooks[shares_name].assign(counts_.begin(), counts_.end());
}

void Shares::summarize(Summary& summary) const {
  summary.shares.deals = deals_;
  summary.shares.micro_batches.assign(counts_.begin(), counts_.end());
}

}  // namespace ronda
