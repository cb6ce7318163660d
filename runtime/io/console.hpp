#pragma once
#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string_view>
#include <vector>

#include <ronda/core/event_sink.hpp>

namespace ronda {

enum class Verbosity { quiet, normal, verbose };

struct ConsoleOptions {
  Verbosity verbosity = Verbosity::normal;
  int bar_width = 0;               ///< columns of the terminal that messages go to (see terminal_width); 0: no bar
  bool table_on_terminal = false;  ///< whether the table goes to a terminal, which it then shares with the bar
};

/// Tells a person how training goes: a table with a line an epoch, and, on a terminal, a bar that shows the epoch so
/// far. Quiet: warnings alone. Verbose: details too, and where a step's time went. For one rank of a job.
class Console final : public EventSink {
 public:
  /// To standard output and standard error, with a bar where that is a terminal (also mpirun's).
  explicit Console(Verbosity verbosity = Verbosity::normal);
  /// @param table     what was asked for: standard output, as a rule
  /// @param messages  the bar, notes and warnings: standard error, as a rule. Both outlive the console.
  Console(std::ostream& table, std::ostream& messages, ConsoleOptions options)
      : table_(table), messages_(messages), options_(options) {}
  /// Takes the bar away.
  ~Console() override;
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void on_note(std::string_view text) override;
  void on_detail(std::string_view text) override;
  [[nodiscard]] bool wants_details() const override { return options_.verbosity == Verbosity::verbose; }
  void on_warning(std::string_view text) override;
  void on_start(const StartReport& report) override { start_ = report; }
  void on_step(const StepReport& report) override;
  void on_epoch(const EpochReport& report) override;

 private:
  /// Sums over the epoch so far.
  struct Progress {
    std::uint64_t steps = 0, samples = 0;
    double loss = 0, metric = 0, seconds = 0;
  };

  void say(std::string_view prefix, std::string_view text);
  void draw_bar(const StepReport& report);
  void clear_bar();
  void print_header(std::string_view start, const std::vector<MetricValue>& metrics);
  void print_times(const StepTimes& times, std::uint64_t steps);

  std::ostream &table_, &messages_;
  ConsoleOptions options_;
  StartReport start_{.metric = {"accuracy", true}};
  Progress epoch_;
  bool header_printed_ = false, bar_drawn_ = false;
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace ronda
