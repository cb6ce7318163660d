#include <fcntl.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <sstream>

#include <ronda/core/error.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/runtime/io/console.hpp>
#include <ronda/runtime/io/step_statistics.hpp>

#include "support/catch.hpp"
#include "support/memory.hpp"
#include "support/message.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

StepReport step_report(std::uint64_t step, double seconds = 0.001) {
  StepReport report;
  report.step = report.step_in_epoch = step;
  report.epoch = 1;
  report.steps_in_epoch = 938;
  report.loss = 0.25;
  report.metric = 0.5;
  report.samples = 64;
  report.seconds = seconds;
  report.times = {.data = seconds / 10, .forward = seconds / 2, .backward = seconds / 10 * 4};
  return report;
}

EpochReport epoch_report(std::uint64_t epoch) {
  EpochReport report;
  report.epoch = epoch;
  report.train_loss = 0.12345;
  report.train_metric = 0.9;
  report.test_loss = 0.5;
  report.test_metric = 0.875;
  report.evaluated = true;
  report.seconds = 2;
  report.samples = 60000;
  report.times = {.data = 0.1, .forward = 0.5, .backward = 0.3, .communication = 0.06, .optimizer = 0.04};
  return report;
}

/// A console that writes to texts.
struct Written {
  explicit Written(ConsoleOptions options) : console(table, messages, options) {}
  std::ostringstream table, messages;
  Console console;
};

std::size_t count_of(const std::string& text, char character) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), character));
}

}  // namespace

TEST_CASE("without a terminal an epoch is a line, under one header") {
  Written written({});
  for (std::uint64_t step = 1; step <= 100; ++step) written.console.on_step(step_report(step));
  written.console.on_epoch(epoch_report(1));
  auto unevaluated = epoch_report(2);
  unevaluated.evaluated = false;
  written.console.on_epoch(unevaluated);
  REQUIRE(written.table.str() ==
          "epoch  train loss  train accuracy  test loss  test accuracy  samples/s   seconds\n"
          "    1      0.1235          90.00%     0.5000         87.50%      30000      2.00\n"
          "    2      0.1235          90.00%          -              -      30000      2.00\n");
  REQUIRE(written.messages.str().empty());
}

TEST_CASE("without a terminal there are lines within an epoch, with what is left of the training") {
  const auto lines = [](const LogInterval& every, std::uint64_t steps, double seconds) {
    Written written({.log_every = every});
    written.console.on_start({.metric = {"accuracy", true}, .steps = 938 * 10});
    for (std::uint64_t step = 1; step <= steps; ++step) written.console.on_step(step_report(step, seconds));
    return written.messages.str();
  };
  const std::string line = "ronda: epoch 1, step 500/938: loss 0.2500, accuracy 50.00%, 512 samples/s, 18:30 left\n";
  CHECK(lines({.steps = 500}, 938, 0.125) == line);  // (9380 - 500) steps of 0.125 s
  CHECK(lines({.seconds = 62.5}, 938, 0.125) == line);
  CHECK(count_of(lines({.steps = 0, .seconds = 30}, 937, 1), '\n') == 31);
  CHECK(lines({.steps = 469, .seconds = 0}, 938, 1).find("938/938") == std::string::npos);  // in the table instead
  CHECK(lines({.steps = 0, .seconds = 0}, 937, 100).empty());
  Written quiet({.verbosity = Verbosity::quiet, .log_every = {.steps = 1}});
  quiet.console.on_step(step_report(1));
  CHECK(quiet.messages.str().empty());
}

TEST_CASE("a step whose loss is not known leaves the means as they are") {
  Written written({.log_every = {.steps = 2}});
  written.console.on_step(step_report(1));
  StepReport unknown = step_report(2);
  unknown.loss = unknown.metric = StepReport::unknown;
  written.console.on_step(unknown);
  require_mentions(written.messages.str(), {"step 2/938: loss 0.2500, accuracy 50.00%"});
}

TEST_CASE("an interval of lines is a number of steps or a time") {
  CHECK(parse_log_interval("100").steps == 100);
  CHECK(parse_log_interval("90s").seconds == 90);
  CHECK(parse_log_interval("2m").seconds == 120);
  CHECK((parse_log_interval("0").steps == 0 && parse_log_interval("0").seconds == 0));
  for (const char* odd : {"", "-1", "1.5", "s", "0s", "10 s", "often"})
    require_mentions(message_of<InputError>([&] { static_cast<void>(parse_log_interval(odd)); }),
                     {".log_every = " + std::string(odd), "a number of steps", "30s"});
}

TEST_CASE("notes, details and warnings are heard as loudly as asked") {
  const auto said = [](Verbosity verbosity) {
    Written written({.verbosity = verbosity});
    written.console.on_note("note");
    written.console.on_detail("detail");
    written.console.on_warning("careful");
    written.console.on_epoch(epoch_report(1));
    return std::pair(written.messages.str(), written.table.str().empty());
  };
  REQUIRE(said(Verbosity::quiet) == std::pair(std::string("ronda: warning: careful\n"), true));
  REQUIRE(said(Verbosity::normal) == std::pair(std::string("ronda: note\nronda: warning: careful\n"), false));
  REQUIRE(said(Verbosity::verbose).first == "ronda: note\nronda: detail\nronda: warning: careful\n");
}

TEST_CASE("a message is shown by its severity, with the console's names of settings") {
  const auto said = [](Severity severity, SettingNames names) {
    Written written({.verbosity = Verbosity::normal, .names = std::move(names)});
    written.console.on_message(severity, "take " + setting("batch_size", 4));
    return written.messages.str();
  };
  const auto as_option = [](const Setting& setting) { return "--" + setting.field + " " + setting.value.value_or(""); };
  CHECK(said(Severity::note, as_option) == "ronda: take --batch_size 4\n");
  CHECK(said(Severity::warning, as_option) == "ronda: warning: take --batch_size 4\n");
  CHECK(said(Severity::detail, as_option).empty());
  CHECK(said(Severity::note, {}) == "ronda: take .batch_size = 4\n");
}

TEST_CASE("verbose tells where a step's time went") {
  Written written({.verbosity = Verbosity::verbose});
  for (std::uint64_t step = 1; step <= 1000; ++step) written.console.on_step(step_report(step));
  written.console.on_epoch(epoch_report(1));
  require_mentions(written.table.str(), {"a step took 1000.0 us:", "data 100.0 us (10.0%)", "forward 500.0 us (50.0%)",
                                         "exposed communication 60.0 us (6.0%)", "optimizer 40.0 us (4.0%)"});
}

TEST_CASE("the bar fits its terminal, is drawn seldom, and goes away") {
  for (const int width : {20, 60, 80, 100, 300}) {
    Written written({.bar_width = width, .table_on_terminal = true});
    for (std::uint64_t step = 1; step <= 469; ++step) written.console.on_step(step_report(step));
    const std::string drawn = written.messages.str();
    REQUIRE(count_of(drawn, '\r') >= 1);
    REQUIRE(count_of(drawn, '\r') <= 5);  // such a loop takes no half second
    const std::string line = drawn.substr(drawn.rfind('\r') + 4);
    REQUIRE(line.size() < static_cast<std::size_t>(width));
    REQUIRE(line.substr(0, 7) == "epoch 1");
    if (width >= 100)
      require_mentions(line, {"[>", "/938", "loss 0.2500", "accuracy 50.00%", "64k samples/s", "0:01 left"});
    written.console.on_epoch(epoch_report(1));
    REQUIRE(written.messages.str() == drawn + "\r\033[K");
    require_mentions(written.table.str(), {"\r\033[K    1 "});
  }
}

TEST_CASE("a quiet console draws no bar, and one that ends leaves none") {
  Written quiet({.verbosity = Verbosity::quiet, .bar_width = 80});
  quiet.console.on_step(step_report(1));
  REQUIRE(quiet.messages.str().empty());
  std::ostringstream table, messages;
  Console(table, messages, {.bar_width = 80}).on_step(step_report(1));
  REQUIRE(messages.str().substr(messages.str().size() - 4) == "\r\033[K");
}

TEST_CASE("speed is that of the steps after the warm-up, or of all where there are few") {
  StepStatistics few;
  REQUIRE(few.samples_per_second() == 0);
  REQUIRE(few.microseconds(0.5) == 0);
  for (std::uint64_t step = 1; step <= 19; ++step) few.on_step(step_report(step, step <= 10 ? 0.1 : 0.001));
  REQUIRE(few.samples_per_second() == Approx(19 * 64 / (10 * 0.1 + 9 * 0.001)));
  REQUIRE(few.microseconds(0.5) == Approx(1e5).epsilon(0.004));
  StepStatistics many;
  for (std::uint64_t step = 1; step <= 20; ++step) many.on_step(step_report(step, step <= 10 ? 0.1 : 0.001));
  REQUIRE(many.samples_per_second() == Approx(64 / 0.001));
  REQUIRE(many.microseconds(0.5) == Approx(1000).epsilon(0.004));
  REQUIRE(many.steps() == 20);
  REQUIRE(many.samples() == 20 * 64);
  REQUIRE(many.seconds() == Approx(1.01));
  REQUIRE(many.times().forward == Approx(0.505));
}

TEST_CASE("quantiles are right within 0.4 %, and counting allocates nothing") {
  StepStatistics statistics;
  const long before = allocations();
  for (std::uint64_t step = 1; step <= 10010; ++step)
    statistics.on_step(step_report(step, 1e-6 * static_cast<double>(step <= 10 ? 1 : step - 10)));
  const long after = allocations();
  REQUIRE(after == before);
  for (const double share : {0.01, 0.5, 0.99, 1.0})
    REQUIRE(statistics.microseconds(share) == Approx(10000 * share).epsilon(0.004));
  statistics.on_step(step_report(1, 0));
  statistics.on_step(step_report(1, 1e9));  // out of range counts at the range's end
  REQUIRE(statistics.microseconds(1) > 1e9);
}

TEST_CASE("a fan-out passes everything on, in order") {
  struct Recorder final : EventSink {
    explicit Recorder(std::string& log, char who) : log_(log), who_(who) {}
    void on_note(std::string_view text) override { add("note ", text); }
    void on_detail(std::string_view text) override { add("detail ", text); }
    void on_warning(std::string_view text) override { add("warning ", text); }
    void on_step(const StepReport& report) override { add("step ", std::to_string(report.step)); }
    void on_epoch(const EpochReport& report) override { add("epoch ", std::to_string(report.epoch)); }
    void add(std::string_view what, std::string_view value) { (log_ += who_).append(what).append(value) += ' '; }
    std::string& log_;
    char who_;
  };
  std::string log;
  Recorder first(log, '1'), second(log, '2');
  FanOut both;
  both.add(first);
  both.add(second);
  both.on_note("a");
  both.on_detail("b");
  both.on_warning("c");
  for (const Severity severity : {Severity::note, Severity::detail, Severity::warning})
    both.on_message(severity, setting("x", 1));
  both.on_step(step_report(7));
  both.on_epoch(epoch_report(3));
  REQUIRE(log ==
          "1note a 2note a 1detail b 2detail b 1warning c 2warning c "
          "1note .x = 1 2note .x = 1 1detail .x = 1 2detail .x = 1 1warning .x = 1 2warning .x = 1 "
          "1step 7 2step 7 1epoch 3 2epoch 3 ");
}

TEST_CASE("a terminal has a width") {
  int terminal = -1, inside = -1;
  const winsize size{.ws_row = 24, .ws_col = 132, .ws_xpixel = 0, .ws_ypixel = 0};
  if (::openpty(&terminal, &inside, nullptr, nullptr, &size) != 0) {
    WARN("not checked: there are no pseudo-terminals here, as in a container without /dev/pts");
    return;
  }
  const auto width_of = [&](const char* kind) {
    ::setenv("TERM", kind, 1);
    return terminal_width(inside);
  };
  const int width = width_of("xterm"), without_escapes = width_of("dumb"), without_name = width_of("");
  ::close(inside);
  ::close(terminal);
  REQUIRE(width == 132);
  REQUIRE(without_escapes == 0);
  REQUIRE(without_name == 0);
}

TEST_CASE("a pipe and a file have no width") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  REQUIRE(terminal_width(ends[1]) == 0);
  for (const int end : ends) ::close(end);
  const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  REQUIRE(terminal_width(file) == 0);
  ::close(file);
}

TEST_CASE("columns have the metric's name, or are left out where a loss has none; validation has columns of its own") {
  const auto header = [](const StartReport& start, EpochReport report) {
    Written written({});
    written.console.on_start(start);
    report.validation_loss = 0.25;
    report.validation_metric = 1.5;
    written.console.on_epoch(report);
    return written.table.str();
  };
  CHECK(header({.metric = {"mae", false}}, epoch_report(1)) ==
        "epoch  train loss  train mae  test loss   test mae  samples/s   seconds\n"
        "    1      0.1235     0.9000     0.5000     0.8750      30000      2.00\n");
  CHECK(header({}, epoch_report(1)) ==
        "epoch  train loss  test loss  samples/s   seconds\n"
        "    1      0.1235     0.5000      30000      2.00\n");
  EpochReport measured = epoch_report(1);
  measured.test_metrics = {{{"top5", true}, {0.9985}}, {{"confusion_matrix"}, {1, 2, 3, 4}, {2, 2}}, {{"r2"}, {-0.5}}};
  CHECK(header({.metric = {"mae", false}}, measured) ==
        "epoch  train loss  train mae  test loss   test mae  test top5    test r2  samples/s   seconds\n"
        "    1      0.1235     0.9000     0.5000     0.8750     99.85%    -0.5000      30000      2.00\n");
  EpochReport validated = epoch_report(1);
  validated.evaluated = false;
  validated.validated = true;
  CHECK(header({.metric = {"mae", false}, .validates = true}, validated) ==
        "epoch  train loss  train mae  validation loss  validation mae  samples/s   seconds\n"
        "    1      0.1235     0.9000           0.2500          1.5000      30000      2.00\n");
}
