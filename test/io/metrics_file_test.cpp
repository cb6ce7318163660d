#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include <ronda/core/error.hpp>
#include <ronda/runtime/io/metrics_file.hpp>

#include "support/catch.hpp"
#include "support/memory.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;
namespace fs = std::filesystem;

namespace {

std::vector<nlohmann::json> lines_of(const std::filesystem::path& path) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(read_file(path));
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

StepReport report_of(std::uint64_t step, double loss) {
  StepReport report;
  report.step = step;
  report.epoch = 1;
  report.loss = loss;
  return report;
}

}  // namespace

TEST_CASE("a step is a line whose numbers read back to the same bits") {
  const TemporaryFolder folder;
  write_file(folder / "metrics", "an older run's\n");
  const double loss = 0.1 + 0.2, accuracy = 1.0 / 3;
  {
    MetricsFile metrics(folder / "metrics");
    StepReport report = report_of(1, loss);
    report.metric = accuracy;
    report.learning_rate = 1e-3;
    report.samples = 64;
    metrics.on_step(report);
    report.step = std::numeric_limits<std::uint64_t>::max();
    report.epoch = report.samples = report.step;
    report.loss = -std::numeric_limits<double>::denorm_min();
    report.metric = report.learning_rate = -1.2345678901234567e-300;
    metrics.on_step(report);
    report.loss = std::nan("");
    report.metric = std::numeric_limits<double>::infinity();
    metrics.on_step(report);
  }
  const auto lines = lines_of(folder / "metrics");
  REQUIRE(lines.size() == 3);
  REQUIRE(lines[0]["step"] == 1);
  REQUIRE(lines[0]["loss"].get<double>() == loss);
  REQUIRE(lines[0]["train_accuracy"].get<double>() == accuracy);
  REQUIRE(lines[0]["learning_rate"].get<double>() == 1e-3);
  REQUIRE(lines[0]["samples"] == 64);
  REQUIRE(lines[0].size() == 7);
  REQUIRE(lines[1]["step"].get<std::uint64_t>() == std::numeric_limits<std::uint64_t>::max());
  REQUIRE(lines[1]["learning_rate"].get<double>() == -1.2345678901234567e-300);
  REQUIRE(lines[2]["loss"].is_null());
  REQUIRE(lines[2]["train_accuracy"].is_null());
}

TEST_CASE("many lines arrive, in order, and none of them allocates") {
  const TemporaryFolder folder;
  MetricsFile metrics(folder / "metrics");
  const long before = allocations();
  for (std::uint64_t step = 1; step <= 1000; ++step) metrics.on_step(report_of(step, 0.1));
  const long after = allocations();
  REQUIRE(after == before);
  metrics.on_epoch({});
  const auto lines = lines_of(folder / "metrics");
  REQUIRE(lines.size() == 1000);
  for (std::size_t i = 0; i < lines.size(); ++i) REQUIRE(lines[i]["step"] == i + 1);
}

TEST_CASE("a place that cannot be written is said") {
  const TemporaryFolder folder;
  require_mentions(message_of<InputError>([&] { MetricsFile(folder / "missing/metrics"); }), {"missing/metrics"});
  MetricsFile full("/dev/full");
  full.on_step({});
  require_mentions(message_of<ResourceError>([&] { full.flush(); }), {"/dev/full", "No space left"});
}

TEST_CASE("training that goes on goes on behind the lines up to there") {
  const TemporaryFolder folder;
  const auto steps_of = [&] {
    std::vector<int> steps;
    for (const auto& line : lines_of(folder / "metrics")) steps.push_back(line["step"]);
    return steps;
  };
  {
    MetricsFile metrics(folder / "metrics");
    for (std::uint64_t step = 1; step <= 5; ++step) metrics.on_step(report_of(step, 0.5));
    metrics.on_checkpoint(5);
    CHECK(steps_of() == std::vector<int>{1, 2, 3, 4, 5});  // before the checkpoint is taken
  }
  const auto go_on_from = [&](std::uint64_t step) {
    MetricsFile metrics(folder / "metrics");
    metrics.on_start({.step = step, .metric = {"accuracy", true}});
    metrics.on_step(report_of(step + 1, 0.25));
  };
  go_on_from(3);
  CHECK(steps_of() == std::vector<int>{1, 2, 3, 4});
  CHECK(lines_of(folder / "metrics").back()["loss"] == 0.25);
  write_file(folder / "metrics", read_file(folder / "metrics") + "{\"step\": 5, \"epo");  // cut off by a kill
  go_on_from(5);
  CHECK(steps_of() == std::vector<int>{1, 2, 3, 4, 6});
  write_file(folder / "metrics", "something else\n");
  go_on_from(7);
  CHECK(steps_of() == std::vector<int>{8});
  go_on_from(0);
  CHECK(steps_of() == std::vector<int>{1});
}

TEST_CASE("the line of an epoch's last step has the epoch's results, also after a restart") {
  const TemporaryFolder folder;
  const auto last = [&] { return lines_of(folder / "metrics").back(); };
  EpochReport epoch;
  epoch.epoch = 1;
  epoch.train_loss = 0.5;
  epoch.train_metric = 2.5;
  epoch.test_loss = 0.25;
  epoch.test_metric = 3.5;
  epoch.seconds = 12;
  epoch.evaluated = true;
  const auto check = [&] {
    const auto lines = lines_of(folder / "metrics");
    REQUIRE(lines.size() == 3);
    CHECK_FALSE(lines[1].contains("test_loss"));
    CHECK(last()["step"] == 3);
    CHECK(last()["epoch_loss"] == 0.5);
    CHECK(last()["epoch_mae"] == 2.5);
    CHECK(last()["test_loss"] == 0.25);
    CHECK(last()["test_mae"] == 3.5);
    CHECK(last()["epoch_seconds"] == 12);
    CHECK_FALSE(last().contains("validation_loss"));
  };
  {
    MetricsFile metrics(folder / "metrics");
    metrics.on_start({.metric = {"mae", false}});
    for (std::uint64_t step = 1; step <= 3; ++step) metrics.on_step(report_of(step, 0.5));
    metrics.on_checkpoint(3);
    CHECK(last()["step"] == 3);
    metrics.on_epoch(epoch);
    check();
  }
  {  // the checkpoint is that of the last step, whose epoch is tested again
    MetricsFile metrics(folder / "metrics");
    metrics.on_start({.step = 3, .epoch = 1, .metric = {"mae", false}});
    metrics.on_epoch(epoch);
    check();
    std::size_t times = 0;
    const std::string text = read_file(folder / "metrics");
    for (std::size_t at = 0; (at = text.find("\"test_loss\"", at)) != std::string::npos; ++at) ++times;
    CHECK(times == 1);
  }
  {  // this one was taken after the test
    MetricsFile metrics(folder / "metrics");
    metrics.on_start({.step = 3, .epoch = 2, .metric = {"mae", false}});
    metrics.on_step(report_of(4, 0.5));
  }
  CHECK(lines_of(folder / "metrics")[2].contains("test_loss"));
  CHECK(lines_of(folder / "metrics").size() == 4);
}

TEST_CASE("a resumed run that ends before its first flush takes no line along") {
  const TemporaryFolder folder;
  const fs::path path = folder / "metrics";
  {
    MetricsFile metrics(path);
    for (std::uint64_t step = 1; step <= 4; ++step) metrics.on_step(report_of(step, 0.5));
  }
  for (int i = 0; i < 3; ++i) {
    MetricsFile metrics(path);
    metrics.on_start({.step = 3, .epoch = 1, .metric = {"accuracy", true}});
    metrics.on_step(report_of(4, 0.5));
    CHECK(lines_of(path).size() == 3);  // as a kill would leave it
  }
  EpochReport epoch;
  epoch.epoch = 1;
  epoch.train_loss = 0.5;
  MetricsFile(path).on_start({.step = 3, .epoch = 1, .metric = {"accuracy", true}});
  for (int i = 0; i < 2; ++i) {  // the epoch's results are there from the second time on
    MetricsFile metrics(path);
    metrics.on_start({.step = 3, .epoch = 1, .metric = {"accuracy", true}});
    REQUIRE(lines_of(path).size() == 3);
    CHECK_FALSE(lines_of(path).back().contains("epoch_loss"));
    metrics.on_epoch(epoch);
    REQUIRE(lines_of(path).size() == 3);
    CHECK(lines_of(path).back()["epoch_loss"] == 0.5);
  }
}

TEST_CASE("a resume that finds lines missing says so") {
  struct Warnings final : EventSink {
    void on_warning(std::string_view text) override { texts.emplace_back(text); }
    std::vector<std::string> texts;
  } warnings;
  const TemporaryFolder folder;
  const auto resume = [&](std::uint64_t step) {
    MetricsFile metrics(folder / "metrics", &warnings);
    metrics.on_start({.step = step});
    metrics.on_step(report_of(step + 1, 0.5));
  };
  resume(0);
  resume(1);
  CHECK(warnings.texts.empty());
  resume(5);
  REQUIRE(warnings.texts.size() == 1);
  require_mentions(warnings.texts.back(), {"metrics ends with step 2", "checkpoint is of step 5"});
  write_file(folder / "metrics", "");
  resume(5);
  REQUIRE(warnings.texts.size() == 2);
  require_mentions(warnings.texts.back(), {"no line of a step"});
}

TEST_CASE("a loss without a metric, and validation data") {
  const TemporaryFolder folder;
  {
    MetricsFile metrics(folder / "metrics");
    metrics.on_start({.validates = true});
    metrics.on_step(report_of(1, 0.5));
    EpochReport epoch;
    epoch.validation_loss = 0.75;
    epoch.validated = true;
    metrics.on_epoch(epoch);
  }
  const auto line = lines_of(folder / "metrics").back();
  CHECK_FALSE(line.contains("train_accuracy"));
  CHECK(line["validation_loss"] == 0.75);
  CHECK_FALSE(line.contains("test_loss"));
}

TEST_CASE("an epoch's line has the metrics of its test, as many as there are, and is gone on behind") {
  const TemporaryFolder folder;
  EpochReport epoch;
  epoch.epoch = 1;
  epoch.evaluated = epoch.validated = true;
  for (int i = 0; i < 5000; ++i)  // more than the file's buffer holds
    epoch.test_metrics.push_back({{"metric" + std::to_string(i)}, {1.0 / (i + 1)}});
  epoch.test_metrics.push_back({{"confusion_matrix"}, {1, 2, 3, 4}, {2, 2}});
  epoch.validation_metrics = {{{"r2"}, {std::nan("")}}};
  {
    MetricsFile metrics(folder / "metrics");
    metrics.on_step(report_of(1, 0.5));
    metrics.on_epoch(epoch);
    StepReport next = report_of(2, 0.25);
    next.epoch = 2;
    metrics.on_step(next);
  }
  auto lines = lines_of(folder / "metrics");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["test_metrics"].size() == 5000);
  CHECK(lines[0]["test_metrics"]["metric2"].get<double>() == 1.0 / 3);
  CHECK(lines[0]["validation_metrics"]["r2"].is_null());
  CHECK_FALSE(lines[1].contains("test_metrics"));
  {
    MetricsFile metrics(folder / "metrics");
    metrics.on_start({.step = 2, .epoch = 2, .metric = {"accuracy", true}});
    metrics.on_step(report_of(3, 0.125));
  }
  lines = lines_of(folder / "metrics");
  REQUIRE(lines.size() == 3);
  CHECK(lines[0]["test_metrics"].size() == 5000);
  CHECK(lines[2]["step"] == 3);
}

TEST_CASE("a file of metrics has one writer at a time") {
  const TemporaryFolder folder;
  {
    MetricsFile metrics(folder / "metrics");
    metrics.on_step(report_of(1, 0.5));
    require_mentions(message_of<InputError>([&] { MetricsFile(folder / "metrics"); }),
                     {".metrics = ", "another training", "a file of its own"});
  }
  REQUIRE(lines_of(folder / "metrics").size() == 1);
  REQUIRE_NOTHROW(MetricsFile(folder / "metrics"));
  const MetricsFile first("/dev/null");
  REQUIRE_NOTHROW(MetricsFile("/dev/null"));
}
