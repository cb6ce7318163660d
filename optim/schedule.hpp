#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ronda {

/// A name of a schedule.
struct ScheduleRow {
  std::string_view name;
  bool follows_length = false;                 ///< its rates depend on how many steps there are
  double warmup = 0;                           ///< the usual one, a share of the training
  std::array<std::string_view, 3> reads = {};  ///< fields of TrainingOptions that it has for itself
};
/// All there are.
[[nodiscard]] std::span<const ScheduleRow> schedule_rows() noexcept;
/// Throws InputError for an unknown name, listing those there are.
[[nodiscard]] const ScheduleRow& schedule_row(std::string_view name);

struct ScheduleOptions {
  std::string name = "constant";  ///< one of schedule_rows()
  double learning_rate = 0.1;     ///< before scaling
  std::uint64_t total_steps = 1;
  std::uint64_t warmup_steps = 0;

  std::string scaling = "none";  ///< none, linear, sqrt: times the global batch relative to `base_batch`, or its root
  std::uint64_t global_batch = 128;
  std::uint64_t base_batch = 128;  ///< the global batch that `learning_rate` is meant for

  double step_factor = 0.1;      ///< step: multiplies the rate …
  std::uint64_t step_every = 0;  ///< … each so many steps; 0: at each third of the training
  double power = 1;              ///< polynomial: 1 is a straight line

  std::uint64_t steps_per_epoch = 1;  ///< for what counts in epochs
  double gamma = 0;                   ///< exponential: multiplies the rate after each epoch
  double restart_epochs = 0;          ///< cosine_restarts: epochs of the first cosine, rounded to whole steps …
  std::uint64_t restart_factor = 1;   ///< … and how many times as long each other one is as the one before
  double pct_start = 0.3;             ///< one_cycle: share of the steps in which the rate grows …
  double div_factor = 25;             ///< … from the peak over this …
  double final_div_factor = 1e4;      ///< … before it falls to that over this
};

/// The learning rate of each step. With T steps after the warm-up, of which t are over, it is `peak` times
///
///     constant     1
///     step         step_factor ^ ⌊t / step_every⌋
///     cosine       (1 + cos(π t / T)) / 2                  (Loshchilov and Hutter, "SGDR", ICLR 2017)
///     polynomial   (1 - t / T) ^ power
///     exponential  gamma ^ e, after e whole epochs                (PyTorch's ExponentialLR)
///     cosine_restarts  (1 + cos(π t / T)) / 2 of cosines of T = restart_epochs · restart_factor ^ i epochs, one after
///                  the other, t from its start on; the first T is rounded to whole steps
///                                                              (SGDR; PyTorch's CosineAnnealingWarmRestarts)
///     one_cycle    half a cosine from 1 / div_factor up to 1, in pct_start of the steps, and one down to 1 /
///     div_factor /
///                  final_div_factor; it has no other warm-up      (Smith and Topin, "Super-convergence", 2017; the
///                  rate of PyTorch's OneCycleLR)
///
/// and during w steps of warm-up it grows in a straight line, peak · (step + 1) / w. `peak` is the learning rate,
/// scaled with the global batch: linear as Goyal et al. ("Accurate, large minibatch SGD", 2017), or by the root as
/// Krizhevsky
/// ("One weird trick for parallelizing convolutional neural networks", 2014).
class Schedule {
 public:
  enum class Kind : std::uint8_t { constant, step, cosine, polynomial, exponential, cosine_restarts, one_cycle };

  /// Throws InputError for an unknown name, listing those there are, and for values that cannot work.
  explicit Schedule(const ScheduleOptions& options);

  /// @param step  from 0, over all epochs; from total_steps on the rate stays as it is there, unless a warm-up is
  /// longer, which goes on to its end
  [[nodiscard]] double rate(std::uint64_t step) const noexcept;
  [[nodiscard]] double peak() const noexcept { return peak_; }
  /// All rates there are, of step 0, 1, …; the last one holds from there on. Throws InputError where they are more than
  /// a table is for, 2^24.
  [[nodiscard]] std::vector<double> rates() const;

 private:
  [[nodiscard]] double restarting_cosine(double step) const noexcept;
  [[nodiscard]] double one_cycle(double step) const noexcept;
  [[nodiscard]] double decay(std::uint64_t step) const noexcept;

  Kind kind_;
  double peak_, step_factor_, power_, gamma_, first_cosine_, restart_factor_;
  double grows_until_, first_share_, last_share_;  ///< of one cycle: a step, and shares of the peak
  std::uint64_t warmup_, after_warmup_, step_every_, epoch_;
};

}  // namespace ronda
