#include <ronda/runtime/io/detail/line_file.hpp>
#include <ronda/runtime/io/metrics_file.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace ronda {
namespace {

/// Writes one object, as a line.
class Line {
 public:
  /// @param line  empty, or an object that was finished, to which more keys are added
  explicit Line(std::string& line) : line_(line), first_(line.empty()) {
    if (!first_) line_.resize(line_.size() - ending.size());
  }

  Line& add(std::string_view key, std::uint64_t value) {
    start(key);
    put(value);
    return *this;
  }
  /// Nothing where the key is empty.
  Line& add(std::string_view key, double value) {
    if (key.empty()) return *this;
    start(key);
    if (std::isfinite(value))
      put(value);
    else
      line_ += "null";
    return *this;
  }
  /// Nothing where none is a number.
  Line& add(std::string_view key, const std::vector<MetricValue>& metrics) {
    if (std::ranges::none_of(metrics, &MetricValue::is_number)) return *this;
    start(key);
    first_ = true;
    for (const MetricValue& value : metrics)
      if (value.is_number()) add(value.metric.name, value.number());
    line_ += '}';
    return *this;
  }
  void finish() { line_ += ending; }

 private:
  static constexpr std::string_view ending = "}\n";

  void start(std::string_view key) {
    line_ += first_ ? "{\"" : ", \"";
    line_ += key;
    line_ += "\": ";
    first_ = false;
  }
  /// Of a double the shortest digits that read back to the same number.
  template <class Number>
  void put(Number number) {
    std::array<char, 32> digits{};
    line_.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
  }

  std::string& line_;
  bool first_;
};

/// Lines of an earlier run that a resumed training keeps.
struct KeptLines {
  std::uintmax_t bytes = 0;
  std::uint64_t step = 0;  ///< of the last line
  std::string last;        ///< the last line, without its end
};

/// The file's whole lines up to `step`, in ascending order.
KeptLines lines_up_to(std::uint64_t step, const std::filesystem::path& path) {
  constexpr std::string_view start = "{\"step\": ";
  std::ifstream file(path, std::ios::binary);
  KeptLines kept;
  for (std::string line; std::getline(file, line) && !file.eof(); kept.bytes += line.size() + 1) {
    std::uint64_t found = 0;
    if (!line.starts_with(start) || line.back() != '}') break;
    std::from_chars(line.data() + start.size(), line.data() + line.size(), found);
    if (found == 0 || found > step) break;
    kept.step = found;
    kept.last = line;
  }
  return kept;
}

/// A step's line without the results of its epoch.
std::string without_results(const std::string& line) {
  return line.substr(0, std::min(line.find(", \"epoch_loss\""), line.size() - 1)) + "}\n";
}

std::string lost_lines(const std::filesystem::path& path, std::uint64_t found, std::uint64_t expected) {
  const std::string end = found == 0 ? "has no line of a step" : "ends with step " + std::to_string(found);
  return path.string() + " " + end + ", and the checkpoint is of step " + std::to_string(expected) +
         ": steps between have no line; give the --metrics file of the run that wrote the checkpoint";
}

}  // namespace

MetricsFile::Keys MetricsFile::keys_for(const std::string& metric) {
  return {"train_" + metric, "epoch_" + metric, "test_" + metric, "validation_" + metric};
}

MetricsFile::MetricsFile(std::filesystem::path path, EventSink* warned)
    : file_(std::make_unique<LineFile>(std::move(path), "metrics")),
      warned_(warned),
      metric_("accuracy"),
      keys_(keys_for(metric_)) {}

MetricsFile::~MetricsFile() = default;

void MetricsFile::on_start(const StartReport& report) {
  started_ = true;
  if (report.metric.name.empty()) keys_ = {};
  if (report.metric.name != metric_ && !report.metric.name.empty()) keys_ = keys_for(report.metric.name);
  metric_ = report.metric.name;
  if (!file_->is_regular()) return;  // a pipe keeps nothing
  const KeptLines kept = report.step > 0 ? lines_up_to(report.step, file_->path()) : KeptLines();
  file_->cut(kept.bytes);
  // The line of the epoch that goes on gets the epoch's results yet, if not for the first time. It stays in the file
  // meanwhile: a run that ends early must not take it along.
  if (kept.last.find("\"epoch\": " + std::to_string(report.epoch) + ",") != std::string::npos)
    file_->reopen_last(kept.last + "\n", without_results(kept.last));
  if (kept.step != report.step && warned_ != nullptr)
    warned_->on_warning(lost_lines(file_->path(), kept.step, report.step));
}

void MetricsFile::on_step(const StepReport& report) {
  if (!started_) on_start({.metric = {"accuracy", true}});
  Line(file_->begin_line())
      .add("step", report.step)
      .add("epoch", report.epoch)
      .add("loss", report.loss)
      .add(keys_.train, report.metric)
      .add("learning_rate", report.learning_rate)
      .add("samples", report.samples)
      .add("seconds", report.seconds)
      .finish();
  file_->end_line();
}

void MetricsFile::flush() { file_->flush(); }

void MetricsFile::on_epoch(const EpochReport& report) {
  file_->finish_newest([&](std::string& newest) {
    Line line(newest);
    line.add("epoch_loss", report.train_loss)
        .add(keys_.epoch, report.train_metric)
        .add("epoch_seconds", report.seconds);
    if (report.evaluated)
      line.add("test_loss", report.test_loss)
          .add(keys_.test, report.test_metric)
          .add("test_metrics", report.test_metrics);
    if (report.validated)
      line.add("validation_loss", report.validation_loss)
          .add(keys_.validation, report.validation_metric)
          .add("validation_metrics", report.validation_metrics);
    line.finish();
  });
}

}  // namespace ronda
