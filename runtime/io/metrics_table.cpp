#include <ronda/runtime/io/detail/line_file.hpp>
#include <ronda/runtime/io/metrics_table.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <string_view>
#include <utility>

namespace ronda {
namespace {

constexpr std::size_t step_columns = 7;
constexpr std::string_view no_results = ",,,,,,,\n";  ///< the cells of an epoch's results, empty

/// In quotes if it has a comma. The name of a metric has no quotes itself.
std::string cell_of(const std::string& name) { return name.find(',') == std::string::npos ? name : '"' + name + '"'; }

/// The first line. A loss without a metric has columns `train_metric` and so on, which stay empty.
std::string names_of_columns(const std::string& metric) {
  const std::string name = metric.empty() ? "metric" : metric;
  return "step,epoch,loss," + cell_of("train_" + name) + ",learning_rate,samples,seconds,epoch_loss," +
         cell_of("epoch_" + name) + ",epoch_seconds,test_loss," + cell_of("test_" + name) + ",validation_loss," +
         cell_of("validation_" + name) + "\n";
}

/// Appends cells to a row.
class Row {
 public:
  explicit Row(std::string& text) : text_(text) {}

  Row& add(std::uint64_t value) { return put(value); }
  /// The shortest digits that read back to the same number.
  Row& add(double value) { return std::isfinite(value) ? put(value) : separate(); }
  Row& add(double value, bool known) { return known ? add(value) : separate(); }

 private:
  template <class Number>
  Row& put(Number number) {
    separate();
    std::array<char, 32> digits{};
    text_.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
    return *this;
  }
  Row& separate() {
    if (!std::exchange(first_, false)) text_ += ',';
    return *this;
  }

  std::string& text_;
  bool first_ = text_.empty();
};

/// Rows of an earlier run that a resumed training keeps.
struct KeptRows {
  std::uintmax_t bytes = 0;
  std::uint64_t step = 0, epoch = 0;  ///< of the last row
  std::string last;                   ///< the last row, with its newline
};

/// The file's whole rows up to `step`, in ascending order, if its first line is `names`.
KeptRows rows_up_to(std::uint64_t step, const std::filesystem::path& path, std::string_view names) {
  std::ifstream file(path, std::ios::binary);
  KeptRows kept;
  std::string line;
  if (!std::getline(file, line) || file.eof() || line + "\n" != names) return kept;
  for (kept.bytes = names.size(); std::getline(file, line) && !file.eof(); kept.bytes += line.size() + 1) {
    const char* const end = line.data() + line.size();
    std::uint64_t found = 0, epoch = 0;
    const auto after = std::from_chars(line.data(), end, found).ptr;
    if (found <= kept.step || found > step || after == end) break;
    std::from_chars(after + 1, end, epoch);
    kept.step = found;
    kept.epoch = epoch;
    kept.last = line + "\n";
  }
  return kept;
}

std::string without_results_of_epoch(const std::string& row) {
  std::size_t end = 0;
  for (std::size_t column = 0; column < step_columns && end != std::string::npos; ++column)
    end = row.find(',', column == 0 ? 0 : end + 1);
  return end == std::string::npos ? row : row.substr(0, end) + std::string(no_results);
}

std::string lost_rows(const std::filesystem::path& path, std::uint64_t found, std::uint64_t expected) {
  return path.string() + (found == 0 ? " has no row of a step" : " ends with step " + std::to_string(found)) +
         ", and the checkpoint is of step " + std::to_string(expected) +
         ": steps between have no row; give the --metrics-csv file of the run that wrote the checkpoint";
}

}  // namespace

MetricsTable::MetricsTable(std::filesystem::path path, EventSink* warned)
    : file_(std::make_unique<LineFile>(std::move(path), "metrics_csv")), warned_(warned) {}

MetricsTable::~MetricsTable() = default;

void MetricsTable::on_start(const StartReport& report) {
  started_ = true;
  has_metric_ = !report.metric.name.empty();
  const std::string names = names_of_columns(report.metric.name);
  KeptRows kept;
  if (file_->is_regular()) {
    if (report.step > 0) kept = rows_up_to(report.step, file_->path(), names);
    file_->cut(kept.bytes);
  }
  if (kept.bytes == 0) file_->begin_line() = names;
  has_row_ = kept.step > 0 && kept.epoch == report.epoch;  // the epoch's results are still to come
  if (has_row_) file_->reopen_last(kept.last, without_results_of_epoch(kept.last));
  if (file_->is_regular() && kept.step != report.step && warned_ != nullptr)
    warned_->on_warning(lost_rows(file_->path(), kept.step, report.step));
}

void MetricsTable::on_step(const StepReport& report) {
  if (!started_) on_start({.metric = {"accuracy", true}});
  std::string& line = file_->begin_line();
  Row(line)
      .add(report.step)
      .add(report.epoch)
      .add(report.loss)
      .add(report.metric, has_metric_)
      .add(report.learning_rate)
      .add(report.samples)
      .add(report.seconds);
  line += no_results;
  has_row_ = true;
  file_->end_line();
}

void MetricsTable::on_checkpoint(std::uint64_t) { file_->flush(); }

void MetricsTable::on_epoch(const EpochReport& report) {
  if (!std::exchange(has_row_, false)) return file_->flush();
  file_->finish_newest([&](std::string& row) {
    row.resize(row.size() - no_results.size());
    Row(row)
        .add(report.train_loss)
        .add(report.train_metric, has_metric_)
        .add(report.seconds)
        .add(report.test_loss, report.evaluated)
        .add(report.test_metric, report.evaluated && has_metric_)
        .add(report.validation_loss, report.validated)
        .add(report.validation_metric, report.validated && has_metric_);
    row += '\n';
  });
}

}  // namespace ronda
