#include <ronda/core/error.hpp>
#include <ronda/runtime/io/detail/place.hpp>
#include <ronda/runtime/io/detail/write_all.hpp>
#include <ronda/runtime/io/metrics_file.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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

/// Writes one object into memory that is long enough.
class Line {
 public:
  /// @param more  keys go on behind those of an object that was finished, and whose end is written over
  Line(char* begin, char* end, bool more = false) : at_(begin), end_(end), first_(!more) {}

  Line& add(std::string_view key, std::uint64_t value) {
    start(key);
    at_ = std::to_chars(at_, end_, value).ptr;
    return *this;
  }
  /// Nothing where the key is empty.
  Line& add(std::string_view key, double value) {
    if (key.empty()) return *this;
    start(key);
    if (std::isfinite(value))
      at_ = std::to_chars(at_, end_, value).ptr;  // the shortest digits that read back to the same number
    else
      put("null");
    return *this;
  }
  char* finish() {
    put("}\n");
    return at_;
  }

 private:
  void start(std::string_view key) {
    put(first_ ? "{\"" : ", \"");
    put(key);
    put("\": ");
    first_ = false;
  }
  void put(std::string_view text) {
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }

  char *at_, *end_;
  bool first_;
};

/// How many bytes of the file the lines up to `step` take: whole lines, in ascending order.
/// @param last  the last of them
std::uintmax_t length_up_to(std::uint64_t step, const std::filesystem::path& path, std::span<char> text,
                            std::string& last) {
  constexpr std::string_view start = "{\"step\": ";
  std::ifstream file(path, std::ios::binary);
  std::uintmax_t length = 0;
  // What is longer than the memory is no line of ours.
  for (; file.getline(text.data(), static_cast<std::streamsize>(text.size())) && !file.eof();
       length += static_cast<std::uintmax_t>(file.gcount())) {
    const std::string_view line(text.data());
    std::uint64_t found = 0;
    if (!line.starts_with(start) || line.back() != '}') break;
    std::from_chars(line.data() + start.size(), line.data() + line.size(), found);
    if (found == 0 || found > step) break;
    last = line;
  }
  return length;
}

}  // namespace

MetricsFile::Keys MetricsFile::keys_for(const std::string& metric) {
  return {"train_" + metric, "epoch_" + metric, "test_" + metric, "validation_" + metric};
}

MetricsFile::MetricsFile(std::filesystem::path path)
    : path_(std::move(path)),
      file_(std::make_unique<Descriptor>(Place(path_).open_to_append())),
      metric_("accuracy"),
      keys_(keys_for(metric_)),
      flushed_(std::chrono::steady_clock::now()) {}

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
  struct stat status {};
  regular_ = ::fstat(file_->number(), &status) == 0 && S_ISREG(status.st_mode);
  if (!regular_) return;  // a pipe keeps nothing
  std::uintmax_t length = 0;
  std::string last;
  if (report.step > 0) length = length_up_to(report.step, path_, last_, last);
  // The line of the epoch that goes on gets the epoch's results yet, if not for the first time.
  last_size_ = 0;
  if (last.find("\"epoch\": " + std::to_string(report.epoch) + ",") != std::string::npos) {
    length -= last.size() + 1;
    last = last.substr(0, std::min(last.find(", \"epoch_loss\""), last.size() - 1)) + "}\n";
    last_size_ = last.copy(last_.data(), last_.size());
    last_is_written_ = false;
  }
  if (::ftruncate(file_->number(), static_cast<off_t>(length)) != 0)
    throw ResourceError("cannot cut " + path_.string() + ": " + std::strerror(errno));
}

void MetricsFile::on_step(const StepReport& report) {
  if (!started_) on_start({.metric = {"accuracy", true}});
  push_last();
  const char* const end = Line(last_.data(), last_.data() + last_.size())
                              .add("step", report.step)
                              .add("epoch", report.epoch)
                              .add("loss", report.loss)
                              .add(keys_.train, report.metric)
                              .add("learning_rate", report.learning_rate)
                              .add("samples", report.samples)
                              .add("seconds", report.seconds)
                              .finish();
  last_size_ = static_cast<std::size_t>(end - last_.data());
  last_is_written_ = false;
  if (std::chrono::steady_clock::now() - flushed_ >= std::chrono::seconds(1)) write_buffer();
}

void MetricsFile::flush() {
  push_last();
  last_is_written_ = last_size_ > 0;
  write_buffer();
}

void MetricsFile::on_epoch(const EpochReport& report) {
  if (last_size_ == 0 || (last_is_written_ && !regular_)) return write_buffer();
  if (last_is_written_) take_last_back();
  const std::string_view ending = "}\n";
  Line line(last_.data() + last_size_ - ending.size(), last_.data() + last_.size(), true);
  line.add("epoch_loss", report.train_loss).add(keys_.epoch, report.train_metric).add("epoch_seconds", report.seconds);
  if (report.evaluated) line.add("test_loss", report.test_loss).add(keys_.test, report.test_metric);
  if (report.validated)
    line.add("validation_loss", report.validation_loss).add(keys_.validation, report.validation_metric);
  last_size_ = static_cast<std::size_t>(line.finish() - last_.data());
  push_last();
  last_size_ = 0;
  write_buffer();
}

/// To the buffer, where it is not in the file.
void MetricsFile::push_last() {
  if (last_size_ == 0 || last_is_written_) return;
  if (buffer_.size() - used_ < last_size_) write_buffer();
  std::memcpy(buffer_.data() + used_, last_.data(), last_size_);
  used_ += last_size_;
}

/// Out of the file, whose last line it is.
void MetricsFile::take_last_back() {
  struct stat status {};
  if (::fstat(file_->number(), &status) != 0 ||
      ::ftruncate(file_->number(), status.st_size - static_cast<off_t>(last_size_)) != 0)
    throw ResourceError("cannot cut " + path_.string() + ": " + std::strerror(errno));
  last_is_written_ = false;
}

void MetricsFile::write_buffer() {
  flushed_ = std::chrono::steady_clock::now();
  const auto bytes = std::as_bytes(std::span(buffer_)).first(std::exchange(used_, 0));
  if (const int error = write_all(file_->number(), bytes); error != 0)
    throw ResourceError("cannot write " + path_.string() + ": " + std::strerror(error));
}

}  // namespace ronda
