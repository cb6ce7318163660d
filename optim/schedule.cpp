#include <ronda/optim/schedule.hpp>
#include <ronda/runtime/core/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

namespace ronda {
namespace {

template <std::size_t size>
std::size_t index_of(const std::array<std::string_view, size>& names, std::string_view name, std::string_view what) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  std::string known;
  for (const auto each : names) known += (known.empty() ? "" : ", ") + std::string(each);
  throw InputError("there is no " + std::string(what) + " '" + std::string(name) + "'; choose one of " + known);
}

double scale(const ScheduleOptions& options) {
  static constexpr std::array<std::string_view, 3> names{"none", "linear", "sqrt"};
  const double ratio = static_cast<double>(options.global_batch) / static_cast<double>(options.base_batch);
  switch (index_of(names, options.scaling, "learning rate scaling")) {
    case 1: return ratio;
    case 2: return std::sqrt(ratio);
    default: return 1;
  }
}

void check(bool good, const std::string& what) {
  if (!good) throw InputError(what);
}

}  // namespace

Schedule::Schedule(const ScheduleOptions& options)
    : peak_(options.learning_rate),
      step_factor_(options.step_factor),
      power_(options.power),
      warmup_(options.warmup_steps),
      after_warmup_(options.total_steps - std::min(options.warmup_steps, options.total_steps)),
      step_every_(options.step_every) {
  static constexpr std::array<std::string_view, 4> names{"constant", "step", "cosine", "polynomial"};
  kind_ = static_cast<Kind>(index_of(names, options.name, "learning rate schedule"));
  const auto not_negative = [](double value) { return value >= 0 && std::isfinite(value); };
  check(not_negative(options.learning_rate),
        "the learning rate must be 0 or more, found " + std::to_string(options.learning_rate));
  check(not_negative(options.step_factor),
        "the schedule's step factor must be 0 or more, found " + std::to_string(options.step_factor));
  check(not_negative(options.power), "the schedule's power must be 0 or more, found " + std::to_string(options.power));
  check(options.base_batch > 0, "the base batch of learning rate scaling must be at least 1, found 0");
  peak_ *= scale(options);
  if (step_every_ == 0) step_every_ = std::max<std::uint64_t>((after_warmup_ + 2) / 3, 1);
}

double Schedule::rate(std::uint64_t step) const noexcept {
  if (step < warmup_) return peak_ * static_cast<double>(step + 1) / static_cast<double>(warmup_);
  return peak_ * decay(std::min(step - warmup_, after_warmup_));
}

double Schedule::decay(std::uint64_t step) const noexcept {
  const double over = after_warmup_ == 0 ? 0 : static_cast<double>(step) / static_cast<double>(after_warmup_);
  switch (kind_) {
    case Kind::constant: return 1;
    case Kind::step: {
      const std::uint64_t whole_intervals = step / step_every_;
      return std::pow(step_factor_, static_cast<double>(whole_intervals));
    }
    case Kind::cosine: return 0.5 * (1 + std::cos(std::numbers::pi * over));
    case Kind::polynomial: return std::pow(1 - over, power_);
  }
  return 1;
}

std::vector<double> Schedule::rates() const {
  std::vector<double> all(warmup_ + after_warmup_ + 1);
  for (std::size_t step = 0; step < all.size(); ++step) all[step] = rate(step);
  return all;
}

}  // namespace ronda
