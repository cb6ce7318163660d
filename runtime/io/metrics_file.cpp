#include <ronda/core/error.hpp>
#include <ronda/runtime/io/detail/descriptor.hpp>
#include <ronda/runtime/io/detail/place.hpp>
#include <ronda/runtime/io/metrics_file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <span>
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

/// Writes at an offset a file that is open to append, where writes otherwise go to its end. Returns 0 or errno.
int write_at(int file, std::uintmax_t offset, std::string_view text) {
  const int flags = ::fcntl(file, F_GETFL);
  if (flags < 0 || ::fcntl(file, F_SETFL, flags & ~O_APPEND) != 0) return errno;
  int error = ::lseek(file, static_cast<off_t>(offset), SEEK_SET) < 0 ? errno : 0;
  if (error == 0) error = write_all(file, std::as_bytes(std::span(text)));
  if (::fcntl(file, F_SETFL, flags) != 0 && error == 0) error = errno;
  return error;
}

}  // namespace

MetricsFile::Keys MetricsFile::keys_for(const std::string& metric) {
  return {"train_" + metric, "epoch_" + metric, "test_" + metric, "validation_" + metric};
}

MetricsFile::MetricsFile(std::filesystem::path path, EventSink* warned)
    : path_(std::move(path)),
      warned_(warned),
      file_(std::make_unique<Descriptor>(Place(path_).open_to_append())),
      metric_("accuracy"),
      keys_(keys_for(metric_)),
      flushed_(std::chrono::steady_clock::now()) {
  struct stat status {};
  regular_ = ::fstat(file_->number(), &status) == 0 && S_ISREG(status.st_mode);
  if (regular_ && lock_whole(file_->number()) == FileLock::Outcome::busy)
    throw InputError(setting("metrics", path_.string()) +
                     " is being written by another training: end that training, or give this one a file of its own");
  last_.reserve(longest_step);
}

MetricsFile::~MetricsFile() {
  try {
    flush();
  } catch (const ResourceError&) {  // a destructor cannot say it; who must know calls flush before
  }
}

void MetricsFile::on_start(const StartReport& report) {
  started_ = true;
  if (report.metric.name.empty()) keys_ = {};
  if (report.metric.name != metric_ && !report.metric.name.empty()) keys_ = keys_for(report.metric.name);
  metric_ = report.metric.name;
  if (!regular_) return;  // a pipe keeps nothing
  const KeptLines kept = report.step > 0 ? lines_up_to(report.step, path_) : KeptLines();
  cut(kept.bytes);
  last_.clear();
  // The line of the epoch that goes on gets the epoch's results yet, if not for the first time. It stays in the file
  // meanwhile: a run that ends early must not take it along.
  if (kept.last.find("\"epoch\": " + std::to_string(report.epoch) + ",") != std::string::npos) {
    last_ = without_results(kept.last);
    last_is_written_ = true;
    if (last_.size() != kept.last.size() + 1) replace_last(kept.last + "\n", last_);
  }
  if (kept.step != report.step && warned_ != nullptr) warned_->on_warning(lost_lines(path_, kept.step, report.step));
}

void MetricsFile::on_step(const StepReport& report) {
  if (!started_) on_start({.metric = {"accuracy", true}});
  push_last();
  last_.clear();
  Line(last_)
      .add("step", report.step)
      .add("epoch", report.epoch)
      .add("loss", report.loss)
      .add(keys_.train, report.metric)
      .add("learning_rate", report.learning_rate)
      .add("samples", report.samples)
      .add("seconds", report.seconds)
      .finish();
  last_is_written_ = false;
  if (std::chrono::steady_clock::now() - flushed_ >= std::chrono::seconds(1)) write_buffer();
}

void MetricsFile::flush() {
  push_last();
  last_is_written_ = !last_.empty();
  write_buffer();
}

void MetricsFile::on_epoch(const EpochReport& report) {
  if (last_.empty() || (last_is_written_ && !regular_)) return write_buffer();
  const std::string written = last_is_written_ ? last_ : std::string();
  Line line(last_);
  line.add("epoch_loss", report.train_loss).add(keys_.epoch, report.train_metric).add("epoch_seconds", report.seconds);
  if (report.evaluated)
    line.add("test_loss", report.test_loss)
        .add(keys_.test, report.test_metric)
        .add("test_metrics", report.test_metrics);
  if (report.validated)
    line.add("validation_loss", report.validation_loss)
        .add(keys_.validation, report.validation_metric)
        .add("validation_metrics", report.validation_metrics);
  line.finish();
  if (written.empty())
    push_last();
  else
    replace_last(written, last_);
  last_.clear();
  write_buffer();
}

/// To the buffer, where it is not in the file.
void MetricsFile::push_last() {
  if (last_.empty() || last_is_written_) return;
  if (buffer_.size() - used_ < last_.size()) write_buffer();
  if (buffer_.size() < last_.size()) return write(last_);
  std::memcpy(buffer_.data() + used_, last_.data(), last_.size());
  used_ += last_.size();
}

void MetricsFile::cut(std::uintmax_t bytes) {
  if (::ftruncate(file_->number(), static_cast<off_t>(bytes)) != 0)
    throw ResourceError("cannot cut " + path_.string() + ": " + std::strerror(errno));
}

/// Replaces the file's last line in place: at no time is the file without it.
void MetricsFile::replace_last(std::string_view before, std::string_view after) {
  struct stat status {};
  if (::fstat(file_->number(), &status) != 0) status.st_size = 0;
  const auto length = static_cast<std::uintmax_t>(status.st_size);
  if (length < before.size()) throw ResourceError("cannot write " + path_.string() + ": another program has cut it");
  const std::uintmax_t begin = length - before.size();
  if (const int error = write_at(file_->number(), begin, after); error != 0) {
    static_cast<void>(write_at(file_->number(), begin, before));  // has room where it was
    cut(length);
    last_.clear();
    throw ResourceError("cannot write " + path_.string() + ": " + std::strerror(error));
  }
  cut(begin + after.size());
}

void MetricsFile::write_buffer() {
  flushed_ = std::chrono::steady_clock::now();
  write({buffer_.data(), std::exchange(used_, 0)});
}

/// If the lines do not fit on the disk, cuts off the incomplete one: the file has whole lines.
void MetricsFile::write(std::string_view text) {
  struct stat before {};
  const bool known = regular_ && ::fstat(file_->number(), &before) == 0;
  const int error = write_all(file_->number(), std::as_bytes(std::span(text)));
  if (error == 0) return;
  if (known) static_cast<void>(!::ftruncate(file_->number(), before.st_size));
  last_.clear();
  throw ResourceError("cannot write " + path_.string() + ": " + std::strerror(error));
}

}  // namespace ronda
