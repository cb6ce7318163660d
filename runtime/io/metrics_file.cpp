#include <ronda/core/error.hpp>
#include <ronda/runtime/io/detail/place.hpp>
#include <ronda/runtime/io/metrics_file.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace ronda {
namespace {

/// Writes one object into memory that is long enough.
class Line {
 public:
  Line(char* begin, char* end) : at_(begin), end_(end) {}

  Line& add(std::string_view key, std::uint64_t value) {
    start(key);
    at_ = std::to_chars(at_, end_, value).ptr;
    return *this;
  }
  Line& add(std::string_view key, double value) {
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
  bool first_ = true;
};

/// How many bytes of the file the lines up to `step` take: whole lines, in ascending order.
std::uintmax_t length_up_to(std::uint64_t step, const std::filesystem::path& path) {
  constexpr std::string_view start = "{\"step\": ";
  std::ifstream file(path, std::ios::binary);
  std::uintmax_t length = 0;
  std::array<char, 512> text{};  // what is longer is no line of ours
  for (; file.getline(text.data(), text.size()) && !file.eof(); length += static_cast<std::uintmax_t>(file.gcount())) {
    const std::string_view line(text.data());
    std::uint64_t found = 0;
    if (!line.starts_with(start) || line.back() != '}') break;
    std::from_chars(line.data() + start.size(), line.data() + line.size(), found);
    if (found == 0 || found > step) break;
  }
  return length;
}

}  // namespace

MetricsFile::MetricsFile(std::filesystem::path path)
    : path_(std::move(path)),
      file_(std::make_unique<Descriptor>(Place(path_).open_to_append())),
      flushed_(std::chrono::steady_clock::now()) {}

MetricsFile::~MetricsFile() {
  try {
    flush();
  } catch (const ResourceError&) {  // a destructor cannot say it; who must know calls flush before
  }
}

void MetricsFile::on_start(std::uint64_t step) {
  started_ = true;
  struct stat status {};
  if (::fstat(file_->number(), &status) != 0 || !S_ISREG(status.st_mode)) return;  // a pipe keeps nothing
  const auto length = static_cast<off_t>(step == 0 ? 0 : length_up_to(step, path_));
  if (::ftruncate(file_->number(), length) != 0)
    throw ResourceError("cannot cut " + path_.string() + ": " + std::strerror(errno));
}

void MetricsFile::on_step(const StepReport& report) {
  if (!started_) on_start(0);
  if (buffer_.size() - used_ < longest_line) flush();
  char* const begin = buffer_.data() + used_;
  const char* const end = Line(begin, buffer_.data() + buffer_.size())
                              .add("step", report.step)
                              .add("epoch", report.epoch)
                              .add("loss", report.loss)
                              .add("train_accuracy", report.accuracy)
                              .add("learning_rate", report.learning_rate)
                              .add("samples", report.samples)
                              .finish();
  used_ += static_cast<std::size_t>(end - begin);
  if (std::chrono::steady_clock::now() - flushed_ >= std::chrono::seconds(1)) flush();
}

void MetricsFile::flush() {
  flushed_ = std::chrono::steady_clock::now();
  std::size_t done = 0;
  while (done < used_) {
    const ssize_t count = ::write(file_->number(), buffer_.data() + done, used_ - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      used_ = 0;
      throw ResourceError("cannot write " + path_.string() + ": " + std::strerror(errno));
    }
    done += static_cast<std::size_t>(count);
  }
  used_ = 0;
}

}  // namespace ronda
