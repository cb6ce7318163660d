#include <ronda/core/error.hpp>
#include <ronda/core/names.hpp>
#include <ronda/core/text.hpp>
#include <ronda/optim/schedule.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace ronda {
namespace {

/// In the order of Schedule::Kind.
constexpr std::array rows{ScheduleRow{"constant"},
                          ScheduleRow{"step", true, 0.1},
                          ScheduleRow{"cosine", true, 0.1},
                          ScheduleRow{"polynomial", true, 0.1},
                          ScheduleRow{"exponential", false, 0, {"gamma"}},
                          ScheduleRow{"cosine_restarts", false, 0, {"restart_epochs", "restart_factor"}},
                          ScheduleRow{"one_cycle", true, 0, {"pct_start", "div_factor", "final_div_factor"}}};

/// How the rate follows the ratio of global batches: by its power.
constexpr EnumNames<double, 3> scaling_powers{{{0, "none"}, {1, "linear"}, {0.5, "sqrt"}}};

double scale(const ScheduleOptions& options) {
  const double ratio = static_cast<double>(options.global_batch) / static_cast<double>(options.base_batch);
  return std::pow(ratio, parse_name(scaling_powers, options.scaling, "a scaling of the learning rate"));
}

void check(bool good, const Message& what) {
  if (!good) throw InputError(what);
}

void check_one_cycle(const ScheduleOptions& options) {
  check(options.warmup_steps == 0, "a schedule one_cycle warms up by itself, for " + setting("pct_start") +
                                       " of the steps; take away " + setting("warmup_epochs"));
  check(options.pct_start >= 0 && options.pct_start <= 1,
        setting("pct_start") + " is a share of the steps, from 0 to 1, found " + shortest(options.pct_start));
  for (const double factor : {options.div_factor, options.final_div_factor})
    check(factor > 0 && std::isfinite(factor), setting("div_factor") + " and " + setting("final_div_factor") +
                                                   " are numbers above 0, found " + shortest(factor));
}

}  // namespace

std::span<const ScheduleRow> schedule_rows() noexcept { return rows; }

const ScheduleRow& schedule_row(std::string_view name) {
  const auto found = std::ranges::find(rows, name, &ScheduleRow::name);
  if (found != rows.end()) return *found;
  const auto text_of = [](const ScheduleRow& row) { return row.name; };
  std::vector<std::string> names;
  for (const ScheduleRow& row : rows) names.emplace_back(row.name);
  throw InputError("'" + std::string(name) + "' is not a schedule of the learning rate: expected " +
                   listed(rows, text_of, " or ") + did_you_mean(name, names));
}

Schedule::Schedule(const ScheduleOptions& options)
    : peak_(options.learning_rate),
      step_factor_(options.step_factor),
      power_(options.power),
      gamma_(options.gamma),
      first_cosine_(std::round(options.restart_epochs * static_cast<double>(options.steps_per_epoch))),
      restart_factor_(static_cast<double>(options.restart_factor)),
      grows_until_(options.pct_start * static_cast<double>(options.total_steps) - 1),
      first_share_(1 / options.div_factor),
      last_share_(first_share_ / options.final_div_factor),
      warmup_(options.warmup_steps),
      after_warmup_(options.total_steps - std::min(options.warmup_steps, options.total_steps)),
      step_every_(options.step_every),
      epoch_(std::max<std::uint64_t>(options.steps_per_epoch, 1)) {
  kind_ = static_cast<Kind>(&schedule_row(options.name) - rows.data());
  const auto not_negative = [](double value) { return value >= 0 && std::isfinite(value); };
  check(not_negative(options.learning_rate) && std::isfinite(static_cast<float>(options.learning_rate)),
        "the learning rate must be 0 or more, and a float32; found " + shortest(options.learning_rate));
  check(not_negative(options.step_factor),
        "the schedule's step factor must be 0 or more, found " + shortest(options.step_factor));
  check(not_negative(options.power), "the schedule's power must be 0 or more, found " + shortest(options.power));
  if (kind_ == Kind::exponential)
    check(gamma_ > 0 && std::isfinite(gamma_), "an exponential schedule multiplies the rate with " + setting("gamma") +
                                                   ", a number above 0, after each epoch; found " + shortest(gamma_));
  if (kind_ == Kind::cosine_restarts)
    check(first_cosine_ >= 1 && std::isfinite(first_cosine_) && restart_factor_ >= 1,
          "a schedule cosine_restarts needs the length of the first cosine, " + setting("restart_epochs") +
              ", of a step or more, and a " + setting("restart_factor") + " from 1 on; found " +
              shortest(options.restart_epochs) + " and " + std::to_string(options.restart_factor));
  if (kind_ == Kind::one_cycle) check_one_cycle(options);
  check(options.base_batch > 0, "the base batch of learning rate scaling must be at least 1, found 0");
  peak_ *= scale(options);
  if (step_every_ == 0) step_every_ = std::max<std::uint64_t>((after_warmup_ + 2) / 3, 1);
}

double Schedule::rate(std::uint64_t step) const noexcept {
  if (step < warmup_) return peak_ * static_cast<double>(step + 1) / static_cast<double>(warmup_);
  return peak_ * decay(std::min(step - warmup_, after_warmup_));
}

double Schedule::restarting_cosine(double step) const noexcept {
  double length = first_cosine_;
  if (restart_factor_ == 1) step = std::fmod(step, length);
  while (step >= length) {
    step -= length;
    length *= restart_factor_;
  }
  return 0.5 * (1 + std::cos(std::numbers::pi * step / length));
}

double Schedule::one_cycle(double step) const noexcept {
  const double last = std::max(static_cast<double>(after_warmup_) - 1, 0.0);
  step = std::min(step, last);
  const auto between = [](double from, double to, double over) {
    return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * over));
  };
  if (step <= grows_until_) return between(first_share_, 1, grows_until_ > 0 ? step / grows_until_ : 1);
  return between(1, last_share_, (step - grows_until_) / (last - grows_until_));
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
    case Kind::exponential: {
      const std::uint64_t whole_epochs = step / epoch_;
      return std::pow(gamma_, static_cast<double>(whole_epochs));
    }
    case Kind::cosine_restarts: return restarting_cosine(static_cast<double>(step));
    case Kind::one_cycle: return one_cycle(static_cast<double>(step));
  }
  return 1;
}

std::vector<double> Schedule::rates() const {
  constexpr std::uint64_t most = std::uint64_t{1} << 24;  // 128 MiB
  const std::uint64_t changing = kind_ == Kind::constant ? 0 : after_warmup_;
  if (warmup_ >= most || changing >= most - warmup_)
    throw InputError("a table of learning rates has " + counted(static_cast<std::int64_t>(most), "step") +
                     " at most, found " + std::to_string(warmup_) + " of warm-up and " + std::to_string(changing) +
                     " after it in which the rate changes; take fewer, or a constant schedule");
  std::vector<double> all(warmup_ + changing + 1);
  for (std::size_t step = 0; step < all.size(); ++step) all[step] = rate(step);
  return all;
}

}  // namespace ronda
