#include <ronda/coordinator/detail/tuner.hpp>

#include <bit>

namespace ronda {
namespace {

constexpr std::array<double, 6> gather_choices{0, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3};
constexpr double window_seconds = 0.1;  ///< long enough for the noise of a busy machine to even out somewhat
constexpr int window_cycles = 20;
constexpr double clearly_better = 1.05;
constexpr double clearly_worse = 2;  ///< so that nobody is kept waiting for long by a trial
constexpr double other_work = 2;     ///< so many times more or less in a cycle: it looks again

constexpr int directions = 4;  // a larger batch, a smaller one, a longer wait, a shorter one

int index_of(std::size_t batch) { return static_cast<int>(std::bit_width(batch)) - 1; }

}  // namespace

CycleTuner::CycleTuner(const Limits& limits) : limits_(limits) {
  here_.batch = index_of(limits_.fixed_batch.value_or(limits_.most_batch));
  measured_ = here_;
  settled_ = limits_.fixed_batch && limits_.fixed_gather;
}

CycleSettings CycleTuner::settings() const noexcept {
  return {limits_.fixed_batch.value_or(std::size_t{1} << measured_.batch),
          limits_.fixed_gather.value_or(gather_choices[static_cast<std::size_t>(measured_.gather)])};
}

bool CycleTuner::may_be_batch(int index) const noexcept {
  return !limits_.fixed_batch && index >= index_of(limits_.least_batch) && index <= index_of(limits_.most_batch);
}

bool CycleTuner::may_be_gather(int index) const noexcept {
  return !limits_.fixed_gather && index >= 0 && index < static_cast<int>(gather_choices.size());
}

/// Nothing where all have been tried since the last gain.
std::optional<CycleTuner::Place> CycleTuner::next_neighbour() {
  for (; without_gain_ < directions; ++without_gain_, direction_ = (direction_ + 1) % directions) {
    Place place = here_;
    const int step = direction_ % 2 == 0 ? 1 : -1;
    if (direction_ < 2 ? may_be_batch(place.batch += step) : may_be_gather(place.gather += step)) return place;
  }
  return {};
}

bool CycleTuner::observe(double seconds, double work) {
  if (limits_.fixed_batch && limits_.fixed_gather) return false;
  seconds_ += seconds;
  work_ += work;
  ++cycles_;
  const bool tries = !(measured_ == here_);
  const bool clear = tries && work_ / seconds_ * clearly_worse < rate_here_;
  if (cycles_ < window_cycles || (seconds_ < window_seconds && !clear)) return false;
  const CycleSettings before = settings();
  end_of_window();
  seconds_ = work_ = 0;
  cycles_ = 0;
  return !(settings() == before);
}

void CycleTuner::end_of_window() {
  const double rate = work_ / seconds_, work_a_cycle = work_ / cycles_;
  if (settled_) {
    const bool other = work_a_cycle > other_work * settled_work_ || work_a_cycle * other_work < settled_work_;
    if (!other) return;
    settled_ = false;
    without_gain_ = 0;
  }
  if (measured_ == here_) {  // now a neighbour, to be compared with this
    rate_here_ = rate;
    if (const auto neighbour = next_neighbour()) {
      measured_ = *neighbour;
      return;
    }
    settled_ = true;
    settled_work_ = work_a_cycle;
    return;
  }
  if (rate > clearly_better * rate_here_) {  // and on in the same direction
    here_ = measured_;
    without_gain_ = 0;
    return;
  }
  measured_ = here_;
  direction_ = (direction_ + 1) % directions;
  ++without_gain_;
}

}  // namespace ronda
