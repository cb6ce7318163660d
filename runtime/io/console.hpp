#pragma once
#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string_view>
#include <utility>
#include <vector>

#include <ronda/core/event_sink.hpp>

namespace ronda {

/// Columns of the terminal that file descriptor `descriptor` (1 or 2) writes to; 0 if it is no terminal, or one without
/// escape codes (TERM is dumb, or not set).
///
/// Under a launcher the descriptor of the launcher is examined, if it runs on this host: Open MPI gives its ranks a
/// pseudo-terminal or a pipe, wherever its own output goes.
[[nodiscard]] int terminal_width(int descriptor);

enum class Verbosity { quiet, normal, verbose };

/// Every `steps` steps, or after every `seconds` of steps; both 0: never.
struct LogInterval {
  std::uint64_t steps = 0;
  double seconds = 30;
};
/// `100`, `30s`, `10m`, or `0`. Throws InputError for any other text.
[[nodiscard]] LogInterval parse_log_interval(std::string_view text);

struct ConsoleOptions {
  Verbosity verbosity = Verbosity::normal;
  LogInterval log_every = {};      ///< lines within an epoch, without a bar
  int bar_width = 0;               ///< columns of the terminal for messages (see terminal_width); 0: no bar
  bool table_on_terminal = false;  ///< whether the table goes to the same terminal as the bar
  SettingNames names = {};         ///< names of settings in messages
};

/// Prints the progress of a training: a table with a line per epoch, and, on a terminal, a bar for the current epoch;
/// elsewhere, lines with the same numbers (ConsoleOptions::log_every). The remaining time is that of the whole training
/// without its tests, estimated from the steps so far. Quiet: only warnings. Verbose: also details, and how the time of
/// a step divides. Use on one rank of a job.
class Console final : public EventSink {
 public:
  /// Prints to standard output and standard error, with a bar if standard error is a terminal (also mpirun's).
  explicit Console(Verbosity verbosity = Verbosity::normal, LogInterval log_every = {}, SettingNames names = {});
  /// @param table     destination of the table, usually standard output
  /// @param messages  destination of the bar, notes and warnings, usually standard error. Both must outlive the
  ///                  console.
  Console(std::ostream& table, std::ostream& messages, ConsoleOptions options)
      : table_(table), messages_(messages), options_(std::move(options)) {}
  /// Erases the bar.
  ~Console() override;
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void on_note(std::string_view text) override;
  void on_detail(std::string_view text) override;
  [[nodiscard]] bool wants_details() const override { return options_.verbosity == Verbosity::verbose; }
  void on_warning(std::string_view text) override;
  void on_message(Severity severity, const Message& message) override;
  void on_start(const StartReport& report) override;
  void on_step(const StepReport& report) override;
  void on_epoch(const EpochReport& report) override;

 private:
  /// Sums over the epoch so far.
  struct Progress {
    std::uint64_t steps = 0, samples = 0;
    std::uint64_t known = 0;  ///< samples of steps with a known, finite loss; `loss` and `metric` sum over these
    double loss = 0, metric = 0, seconds = 0;
    [[nodiscard]] double mean(double sum) const noexcept { return known > 0 ? sum / static_cast<double>(known) : 0; }
  };
  /// Sums over this run.
  struct Run {
    std::uint64_t steps = 0;
    double seconds = 0, logged = 0;  ///< of steps; `seconds` at the last logged line
  };

  void say(std::string_view prefix, std::string_view text);
  [[nodiscard]] bool is_log_due(const StepReport& report) const;
  void log_step(const StepReport& report);
  [[nodiscard]] double seconds_left(const StepReport& report) const;
  void draw_bar(const StepReport& report);
  void clear_bar();
  void print_header(std::string_view start, const std::vector<MetricValue>& metrics);
  void print_times(const StepTimes& times, std::uint64_t steps);

  std::ostream &table_, &messages_;
  ConsoleOptions options_;
  StartReport start_{.metric = {"accuracy", true}};
  Progress epoch_;
  Run run_;
  bool header_printed_ = false, bar_drawn_ = false;
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace ronda
