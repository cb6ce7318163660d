#include <ronda/core/error.hpp>
#include <ronda/core/process.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/io/console.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

namespace ronda {
namespace {

namespace fs = std::filesystem;

/// A terminal that calls itself dumb, or nothing at all, prints escape codes as they are.
bool understands_escapes() {
  const char* kind = std::getenv("TERM");
  return kind != nullptr && *kind != '\0' && kind != std::string_view("dumb");
}

int width_of(int descriptor) {
  if (::isatty(descriptor) == 0) return 0;
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// The outermost launcher above us, as its folder in /proc; empty where we were not started by one.
fs::path launcher() {
  fs::path found;
  for (int process = ::getppid(); process > 1 && is_launcher(process); process = parent_of(process))
    found = "/proc/" + std::to_string(process);
  return found;
}

}  // namespace

int terminal_width(int descriptor) {
  if (!understands_escapes()) return 0;
  const fs::path above = launcher();
  if (above.empty()) return width_of(descriptor);
  std::error_code error;
  const fs::path target = fs::read_symlink(above / "fd" / std::to_string(descriptor), error);
  if (error || target.string().rfind("/dev/", 0) != 0) return 0;
  const int opened = ::open(target.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (opened < 0) return 0;
  const int width = width_of(opened);
  ::close(opened);
  return width;
}

namespace {

constexpr std::string_view erase_line = "\r\033[K";
constexpr std::chrono::milliseconds between_drawings{100};

/// Text of bounded length, put together without the heap; what does not fit is cut off.
class Text {
 public:
  template <class... Arguments>
  void add(const char* format, Arguments... arguments) {
    const std::size_t room = buffer_.size() - used_;
    const int count = print_into(std::span(buffer_).subspan(used_), format, arguments...);
    if (count > 0) used_ += std::min(static_cast<std::size_t>(count), room - 1);
  }
  [[nodiscard]] std::string_view view() const { return {buffer_.data(), used_}; }

 private:
  std::array<char, 512> buffer_{};
  std::size_t used_ = 0;
};

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

/// 812, 45.6k, 1.23M: three digits tell enough.
void add_rate(Text& text, double rate) {
  if (rate >= 1e6)
    text.add("%.3gM samples/s", rate / 1e6);
  else if (rate >= 1e4)
    text.add("%.3gk samples/s", rate / 1e3);
  else
    text.add("%.0f samples/s", rate);
}

/// @param width  columns at least
void add_metric(Text& text, const Metric& metric, int width, double value) {
  if (metric.share)
    text.add("%*.2f%%", std::max(width - 1, 0), 100 * value);
  else
    text.add("%*.4f", width, value);
}

/// What epochs are tested with.
const char* tests_of(const StartReport& start) { return start.validates ? "validation" : "test"; }

/// Of the metrics of an epoch's test.
const std::vector<MetricValue>& metrics_of(const EpochReport& report) {
  return report.validated ? report.validation_metrics : report.test_metrics;
}

/// Columns that a number takes under this header.
int width_under(const std::string& header) { return std::max(9, static_cast<int>(header.size())); }

void add_duration(Text& text, double seconds) {
  const auto whole = static_cast<unsigned long long>(std::llround(std::clamp(seconds, 0.0, 1e9)));
  if (whole >= 3600)
    text.add("%llu:%02llu:%02llu", whole / 3600, whole / 60 % 60, whole % 60);
  else
    text.add("%llu:%02llu", whole / 60, whole % 60);
}

}  // namespace

LogInterval parse_log_interval(std::string_view text) {
  std::uint64_t steps = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, steps);
  if (parsed.ec == std::errc() && parsed.ptr == end) return {.steps = steps, .seconds = 0};
  if (const auto seconds = parse_duration(text)) return {.steps = 0, .seconds = *seconds};
  throw InputError(setting("log_every", printable(text)) +
                   ": expected a number of steps, a time as 30s, 10m or 1h, or 0 for no lines");
}

Console::Console(Verbosity verbosity, LogInterval log_every, SettingNames names)
    : Console(std::cout, std::cerr,
              {.verbosity = verbosity,
               .log_every = log_every,
               .bar_width = terminal_width(2),
               .table_on_terminal = terminal_width(1) > 0,
               .names = std::move(names)}) {}

Console::~Console() { clear_bar(); }

void Console::say(std::string_view prefix, std::string_view text) {
  clear_bar();
  messages_ << prefix << text << '\n' << std::flush;
}

void Console::on_note(std::string_view text) {
  if (options_.verbosity != Verbosity::quiet) say("ronda: ", text);
}

void Console::on_detail(std::string_view text) {
  if (options_.verbosity == Verbosity::verbose) say("ronda: ", text);
}

void Console::on_warning(std::string_view text) { say("ronda: warning: ", text); }

void Console::on_message(Severity severity, const Message& message) {
  on_text(severity, message.text_with(options_.names));
}

void Console::on_start(const StartReport& report) {
  start_ = report;
  run_ = {};
}

void Console::on_step(const StepReport& report) {
  ++epoch_.steps;
  epoch_.samples += report.samples;
  epoch_.seconds += report.seconds;
  if (std::isfinite(report.loss)) {
    const auto samples = static_cast<double>(report.samples);
    epoch_.known += report.samples;
    epoch_.loss += report.loss * samples;
    epoch_.metric += report.metric * samples;
  }
  ++run_.steps;
  run_.seconds += report.seconds;
  if (options_.verbosity == Verbosity::quiet) return;
  if (options_.bar_width == 0) {
    if (is_log_due(report)) log_step(report);
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (now - drawn_ < between_drawings) return;
  drawn_ = now;
  draw_bar(report);
}

/// An epoch's last step has no log line: the table has one.
bool Console::is_log_due(const StepReport& report) const {
  if (report.step_in_epoch == report.steps_in_epoch) return false;
  const LogInterval& every = options_.log_every;
  if (every.steps > 0) return report.step % every.steps == 0;
  return every.seconds > 0 && run_.seconds - run_.logged >= every.seconds;
}

void Console::log_step(const StepReport& report) {
  run_.logged = run_.seconds;
  Text line;
  line.add("epoch %llu, step %llu/%llu: loss %.4f, ", static_cast<unsigned long long>(report.epoch),
           static_cast<unsigned long long>(report.step_in_epoch),
           static_cast<unsigned long long>(report.steps_in_epoch), epoch_.mean(epoch_.loss));
  if (const Metric& metric = start_.metric; !metric.name.empty()) {
    line.add("%s ", metric.name.c_str());
    add_metric(line, metric, 0, epoch_.mean(epoch_.metric));
    line.add(", ");
  }
  add_rate(line, ratio(static_cast<double>(epoch_.samples), epoch_.seconds));
  line.add(", ");
  add_duration(line, seconds_left(report));
  line.add(" left");
  say("ronda: ", line.view());
}

double Console::seconds_left(const StepReport& report) const {
  const std::uint64_t done = start_.steps > 0 ? report.step : report.step_in_epoch,
                      all = start_.steps > 0 ? start_.steps : report.steps_in_epoch;
  return ratio(run_.seconds, static_cast<double>(run_.steps)) * static_cast<double>(all - std::min(done, all));
}

void Console::draw_bar(const StepReport& report) {
  const auto step = static_cast<double>(report.step_in_epoch), steps = static_cast<double>(report.steps_in_epoch);
  const auto samples = static_cast<double>(epoch_.samples);
  Text right;
  right.add(" %llu/%llu  loss %.4f  ", static_cast<unsigned long long>(report.step_in_epoch),
            static_cast<unsigned long long>(report.steps_in_epoch), epoch_.mean(epoch_.loss));
  if (const Metric& metric = start_.metric; !metric.name.empty()) {
    right.add("%s ", metric.name.c_str());
    add_metric(right, metric, 0, epoch_.mean(epoch_.metric));
    right.add("  ");
  }
  add_rate(right, ratio(samples, epoch_.seconds));
  right.add("  ");
  add_duration(right, seconds_left(report));
  right.add(" left");

  Text line;
  line.add("epoch %llu ", static_cast<unsigned long long>(report.epoch));
  const auto width = static_cast<std::size_t>(options_.bar_width - 1);  // the last column would wrap
  const std::size_t taken = line.view().size() + right.view().size() + 2;
  if (width >= taken + 8) {
    const std::size_t room = std::min<std::size_t>(width - taken, 40);
    const auto done = static_cast<std::size_t>(static_cast<double>(room) * std::min(ratio(step, steps), 1.0));
    line.add("[");
    for (std::size_t i = 0; i < room; ++i) line.add(i < done ? "=" : i == done ? ">" : " ");
    line.add("]");
  }
  line.add("%.*s", static_cast<int>(right.view().size()), right.view().data());
  messages_ << erase_line << line.view().substr(0, width) << std::flush;
  bar_drawn_ = true;
}

void Console::clear_bar() {
  if (!bar_drawn_) return;
  messages_ << erase_line << std::flush;
  bar_drawn_ = false;
}

void Console::on_epoch(const EpochReport& report) {
  const Progress epoch = std::exchange(epoch_, {});
  if (options_.verbosity == Verbosity::quiet) return;
  clear_bar();
  // Standard error may arrive later than standard output where a launcher forwards both: erase the bar from here too.
  const std::string_view start = options_.table_on_terminal && options_.bar_width > 0 ? erase_line : "";
  if (!header_printed_) print_header(start, metrics_of(report));
  const Metric& metric = start_.metric;
  const std::string tests = tests_of(start_);
  const auto add_pair = [&](Text& row, const std::string& data, bool known, double loss, double value) {
    const int loss_width = width_under(data + " loss"), metric_width = width_under(data + " " + metric.name);
    if (known)
      row.add("%*.4f  ", loss_width, loss);
    else
      row.add("%*s  ", loss_width, "-");
    if (metric.name.empty()) return;
    if (known)
      add_metric(row, metric, metric_width, value);
    else
      row.add("%*s", metric_width, "-");
    row.add("  ");
  };
  Text row;
  row.add("%5llu  ", static_cast<unsigned long long>(report.epoch));
  add_pair(row, "train", true, report.train_loss, report.train_metric);
  if (start_.validates)
    add_pair(row, tests, report.validated, report.validation_loss, report.validation_metric);
  else
    add_pair(row, tests, report.evaluated, report.test_loss, report.test_metric);
  for (const MetricValue& value : metrics_of(report)) {
    if (!value.is_number()) continue;
    add_metric(row, value.metric, width_under(tests + " " + value.metric.name), value.number());
    row.add("  ");
  }
  row.add("%9.0f  %8.2f", ratio(static_cast<double>(report.samples), report.seconds), report.seconds);
  table_ << start << row.view() << '\n' << std::flush;
  if (options_.verbosity == Verbosity::verbose && epoch.steps > 0) print_times(report.times, epoch.steps);
}

void Console::print_header(std::string_view start, const std::vector<MetricValue>& metrics) {
  Text header;
  header.add("epoch  ");
  for (const std::string data : {"train", tests_of(start_)})
    for (const std::string& what : {std::string("loss"), start_.metric.name}) {
      const std::string name = data + " " + what;
      if (!what.empty()) header.add("%*s  ", width_under(name), name.c_str());
    }
  for (const MetricValue& value : metrics) {
    const std::string name = std::string(tests_of(start_)) + " " + value.metric.name;
    if (value.is_number()) header.add("%*s  ", width_under(name), name.c_str());
  }
  header.add("%9s  %8s", "samples/s", "seconds");
  table_ << start << header.view() << '\n';
  header_printed_ = true;
}

void Console::print_times(const StepTimes& times, std::uint64_t steps) {
  const double total = times.total();
  const auto microseconds = [&](double seconds) { return 1e6 * seconds / static_cast<double>(steps); };
  Text line;
  line.add("       a step took %.1f us:", microseconds(total));
  const std::array<std::pair<const char*, double>, 5> parts{{{"data", times.data},
                                                             {"forward", times.forward},
                                                             {"backward", times.backward},
                                                             {"exposed communication", times.communication},
                                                             {"optimizer", times.optimizer}}};
  for (const auto& [name, seconds] : parts)
    line.add("%s %s %.1f us (%.1f%%)", name == parts[0].first ? "" : ",", name, microseconds(seconds),
             100 * ratio(seconds, total));
  table_ << line.view() << '\n' << std::flush;
}

}  // namespace ronda
