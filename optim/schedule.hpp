#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ronda {

/// A schedule by name.
struct ScheduleRow {
  std::string_view name;
  bool follows_length = false;                 ///< its rates depend on the number of steps
  double warmup = 0;                           ///< default, as a share of the training
  std::array<std::string_view, 3> reads = {};  ///< fields of TrainingOptions that only this schedule reads
};
/// The rows of all schedules.
[[nodiscard]] std::span<const ScheduleRow> schedule_rows() noexcept;
/// Throws InputError for an unknown name, listing the known names.
[[nodiscard]] const ScheduleRow& schedule_row(std::string_view name);

struct ScheduleOptions {
  std::string name = "constant";  ///< one of schedule_rows()
  double learning_rate = 0.1;     ///< before scaling
  std::uint64_t total_steps = 1;
  std::uint64_t warmup_steps = 0;

  std::string scaling = "none";  ///< none, linear, sqrt: scale the rate by global_batch / base_batch, or by its root
  std::uint64_t global_batch = 128;
  std::uint64_t base_batch = 128;  ///< the global batch that `learning_rate` is meant for

  double step_factor = 0.1;      ///< step: factor of the rate …
  std::uint64_t step_every = 0;  ///< … each time after this number of steps; 0: a third of the training
  double power = 1;              ///< polynomial: 1 is a straight line

  std::uint64_t steps_per_epoch = 1;  ///< for schedules that count in epochs
  double gamma = 0;                   ///< exponential: factor of the rate after each epoch
  double restart_epochs = 0;          ///< cosine_restarts: epochs of the first cosine, rounded to whole steps
  std::uint64_t restart_factor = 1;   ///< cosine_restarts: length of each cosine relative to the previous one
  double pct_start = 0.3;             ///< one_cycle: share of the steps in which the rate grows
  double div_factor = 25;             ///< one_cycle: peak rate / initial rate
  double final_div_factor = 1e4;      ///< one_cycle: initial rate / final rate
};

/// The learning rate of each step. In step t of T after the warm-up (from 0), it is `peak` times
///
///     constant         1
///     step             step_factor ^ ⌊t / step_every⌋
///     cosine           (1 + cos(π t / T)) / 2                     (Loshchilov and Hutter, "SGDR", ICLR 2017)
///     polynomial       (1 - t / T) ^ power
///     exponential      gamma ^ e, after e whole epochs            (PyTorch's ExponentialLR)
///     cosine_restarts  a sequence of cosines as above; cosine i has T = restart_epochs · restart_factor ^ i epochs,
///                      where the first T is rounded to whole steps, and t counts from the start of each cosine
///                                                                 (SGDR; PyTorch's CosineAnnealingWarmRestarts)
///     one_cycle        half a cosine from 1 / div_factor up to 1, in pct_start of the steps, then half a cosine down
///                      to 1 / div_factor / final_div_factor; it has no other warm-up
///                                     (Smith and Topin, "Super-convergence", 2017; the rate of PyTorch's OneCycleLR)
///
/// In w steps of warm-up it grows linearly: peak · (step + 1) / w. `peak` is the learning rate scaled with the global
/// batch: linearly as Goyal et al. ("Accurate, large minibatch SGD", 2017), or by the root as Krizhevsky ("One weird
/// trick for parallelizing convolutional neural networks", 2014).
class Schedule {
 public:
  enum class Kind : std::uint8_t { constant, step, cosine, polynomial, exponential, cosine_restarts, one_cycle };

  /// Throws InputError for an unknown name (listing the known names) and for invalid values.
  explicit Schedule(const ScheduleOptions& options);

  /// @param step  from 0, over all epochs; from total_steps on the rate is constant, except that a longer warm-up
  ///              continues to its end
  [[nodiscard]] double rate(std::uint64_t step) const noexcept;
  [[nodiscard]] double peak() const noexcept { return peak_; }
  /// The rates of steps 0, 1, …; the last one applies to all later steps. Throws InputError for more than 2^24 rates.
  [[nodiscard]] std::vector<double> rates() const;

 private:
  [[nodiscard]] double restarting_cosine(double step) const noexcept;
  [[nodiscard]] double one_cycle(double step) const noexcept;
  [[nodiscard]] double decay(std::uint64_t step) const noexcept;

  Kind kind_;
  double peak_, step_factor_, power_, gamma_, first_cosine_, restart_factor_;
  double grows_until_, first_share_, last_share_;  ///< one_cycle: step of the peak, first and last rate / peak
  std::uint64_t warmup_, after_warmup_, step_every_, epoch_;
};

}  // namespace ronda
