#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/runtime/io/metrics_table.hpp>

#include "support/catch.hpp"
#include "support/memory.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;
namespace fs = std::filesystem;

namespace metrics_table_test {
namespace {

using Cells = std::vector<std::string>;

/// Rows of cells; a row that lacks cells or its end fails.
std::vector<Cells> rows_of(const fs::path& path) {
  std::vector<Cells> rows;
  const std::string text = read_file(path);
  REQUIRE(text.ends_with('\n'));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back();
    std::istringstream cells(line + ",");
    for (std::string cell; std::getline(cells, cell, ',');) rows.back().push_back(cell);
    REQUIRE(rows.back().size() == 14);
  }
  return rows;
}

StepReport step_of(std::uint64_t step, std::uint64_t epoch = 1) {
  StepReport report;
  report.step = step;
  report.epoch = epoch;
  report.loss = 0.5;
  return report;
}

EpochReport epoch_report() {
  EpochReport report;
  report.epoch = 1;
  report.train_loss = 0.75;
  report.train_metric = 2.5;
  report.test_loss = 0.25;
  report.test_metric = 3.5;
  report.seconds = 12;
  report.evaluated = true;
  return report;
}

const Cells results = {"0.75", "2.5", "12", "0.25", "3.5", "", ""}, no_results(7);

Cells results_of(const Cells& row) { return {row.end() - 7, row.end()}; }

}  // namespace

TEST_CASE("a table of metrics has names, and a row per step whose numbers read back to the same bits") {
  const TemporaryFolder folder;
  write_file(folder / "table", "an older run's\n");
  const double loss = 0.1 + 0.2;
  {
    MetricsTable table(folder / "table");
    table.on_start({.metric = {"mae", false}});
    StepReport report = step_of(1);
    report.loss = loss;
    report.metric = -std::numeric_limits<double>::denorm_min();
    report.learning_rate = 1e-3;
    report.samples = std::numeric_limits<std::uint64_t>::max();
    table.on_step(report);
    report.step = 2;
    report.loss = std::nan("");
    report.metric = std::numeric_limits<double>::infinity();
    table.on_step(report);
  }
  const auto rows = rows_of(folder / "table");
  REQUIRE(rows.size() == 3);
  CHECK(rows[0] == Cells{"step", "epoch", "loss", "train_mae", "learning_rate", "samples", "seconds", "epoch_loss",
                         "epoch_mae", "epoch_seconds", "test_loss", "test_mae", "validation_loss", "validation_mae"});
  CHECK(std::stod(rows[1][2]) == loss);
  CHECK(rows[1][0] == "1");
  CHECK(rows[1][3] == "-5e-324");
  CHECK(std::stod(rows[1][4]) == 1e-3);
  CHECK(rows[1][5] == "18446744073709551615");
  CHECK(rows[2][2].empty());
  CHECK(rows[2][3].empty());
}

TEST_CASE("the row of an epoch's last step has the epoch's results, also after a checkpoint and a restart") {
  const TemporaryFolder folder;
  const fs::path path = folder / "table";
  const auto check = [&] {
    const auto rows = rows_of(path);
    REQUIRE(rows.size() == 4);
    CHECK(results_of(rows[2]) == no_results);
    CHECK(rows[3][0] == "3");
    CHECK(results_of(rows[3]) == results);
  };
  {
    MetricsTable table(path);
    table.on_start({.metric = {"mae", false}});
    for (std::uint64_t step = 1; step <= 3; ++step) table.on_step(step_of(step));
    table.on_checkpoint(3);
    CHECK(rows_of(path).size() == 4);  // before the checkpoint is taken
    table.on_epoch(epoch_report());
    check();
  }
  {  // the checkpoint of step 3 was taken before the test, which comes again
    MetricsTable table(path);
    table.on_start({.step = 3, .epoch = 1, .metric = {"mae", false}});
    CHECK(results_of(rows_of(path)[3]) == no_results);
    table.on_epoch(epoch_report());
    check();
  }
  MetricsTable table(path);  // and after it
  table.on_start({.step = 3, .epoch = 2, .metric = {"mae", false}});
  check();
}

TEST_CASE("a table of a resumed training continues after the rows of its checkpoint") {
  struct Warnings final : EventSink {
    void on_warning(std::string_view text) override { texts.emplace_back(text); }
    std::vector<std::string> texts;
  } warnings;
  const TemporaryFolder folder;
  const fs::path path = folder / "table";
  const auto resume = [&](std::uint64_t step, const std::string& metric = "accuracy") {
    MetricsTable table(path, &warnings);
    table.on_start({.step = step, .metric = {metric, true}});
    table.on_step(step_of(step + 1));
  };
  const auto steps = [&] {
    std::string text;
    for (const Cells& row : rows_of(path)) text += row[0] + " ";
    return text;
  };
  for (const std::uint64_t step : {0, 1, 2, 1}) resume(step);
  CHECK(steps() == "step 1 2 ");
  write_file(path, read_file(path) + "3,1,0.");  // cut off by a kill
  resume(2);
  CHECK(steps() == "step 1 2 3 ");
  CHECK(warnings.texts.empty());
  resume(5);
  CHECK(steps() == "step 1 2 3 6 ");
  REQUIRE(warnings.texts.size() == 1);
  require_mentions(warnings.texts.back(), {"table ends with step 3", "checkpoint is of step 5"});
  resume(3, "mae");  // other columns
  CHECK(steps() == "step 4 ");
  CHECK(warnings.texts.size() == 2);
  write_file(path, "step\nsomething else\n");
  resume(7);
  CHECK(steps() == "step 8 ");
  require_mentions(warnings.texts.back(), {"no row of a step"});
}

TEST_CASE("a table without a metric, an epoch without a step, and many rows without an allocation") {
  const TemporaryFolder folder;
  {
    MetricsTable table(folder / "table");
    table.on_start({});
    table.on_epoch(epoch_report());
    const long before = allocations();
    for (std::uint64_t step = 1; step <= 1000; ++step) table.on_step(step_of(step));
    CHECK(allocations() == before);
    table.on_epoch(epoch_report());
  }
  const auto rows = rows_of(folder / "table");
  REQUIRE(rows.size() == 1001);
  CHECK(rows[0][3] == "train_metric");
  CHECK(rows[1000][3].empty());
  CHECK(results_of(rows[1000]) == Cells{"0.75", "", "12", "0.25", "", "", ""});
}

TEST_CASE("a table that cannot be written is refused, with its option") {
  const TemporaryFolder folder;
  require_mentions(message_of<InputError>([&] { MetricsTable(folder / "missing/table"); }), {"missing/table"});
  const MetricsTable first(folder / "table");
  require_mentions(message_of<InputError>([&] { MetricsTable(folder / "table"); }),
                   {".metrics_csv = ", "another training"});
  MetricsTable full("/dev/full");
  full.on_start({});
  require_mentions(message_of<ResourceError>([&] { full.on_checkpoint(0); }), {"/dev/full", "No space left"});
}

}  // namespace metrics_table_test
