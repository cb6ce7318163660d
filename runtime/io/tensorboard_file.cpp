#include <ronda/core/error.hpp>
#include <ronda/core/process.hpp>
#include <ronda/runtime/io/detail/descriptor.hpp>
#include <ronda/runtime/io/detail/place.hpp>
#include <ronda/runtime/io/tensorboard_file.hpp>

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <system_error>
#include <utility>

namespace ronda {
namespace {

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78U : 0);  // Castagnoli's
    table[byte] = value;
  }
  return table;
}

/// CRC-32C, rotated and shifted, as records have it.
std::uint32_t masked_crc(std::string_view bytes) {
  static constexpr auto table = make_crc_table();
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  return std::rotr(~crc, 15) + 0xa282ead8U;
}

/// The bytes of a number, the least significant first.
template <class T>
void add_bytes(std::string& to, T number) {
  std::array<char, sizeof number> bytes{};
  std::memcpy(bytes.data(), &number, sizeof number);
  if constexpr (std::endian::native == std::endian::big) std::ranges::reverse(bytes);
  to.append(bytes.data(), bytes.size());
}

// Fields of a protocol buffer message: the field's number and type, then its value.
enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void add_varint(std::string& to, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) to += static_cast<char>(number | 0x80);
  to += static_cast<char>(number);
}
void add_key(std::string& to, unsigned field, Wire type) { add_varint(to, field << 3 | static_cast<unsigned>(type)); }
void add_text(std::string& to, unsigned field, std::string_view text) {
  add_key(to, field, Wire::bytes);
  add_varint(to, text.size());
  to += text;
}

constexpr std::size_t longest_event = 1024;  // bytes; of a metric with a long name more

// Of event.proto and summary.proto.
constexpr unsigned event_wall_time = 1, event_step = 2, event_file_version = 3, event_summary = 5,
                   event_session_log = 7;
constexpr unsigned summary_value = 1, value_tag = 1, value_simple = 2;
constexpr std::string_view session_starts{"\x08\x01", 2};  // SessionLog{status: START}

/// No other run has it: a process writes one after the other, and a host has one process of a number at a time.
std::filesystem::path new_name(const std::filesystem::path& folder) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  const std::string begin =
      "events.out.tfevents." + std::to_string(seconds) + "." + host_name() + "." + std::to_string(::getpid()) + ".";
  for (int number = 0;; ++number) {
    std::error_code ignored;
    auto path = folder / (begin + std::to_string(number));
    if (!std::filesystem::exists(path, ignored)) return path;
  }
}

std::filesystem::path made(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw InputError("cannot create " + folder.string() + ": " + error.message());
  return folder;
}

}  // namespace

TensorBoardFile::TensorBoardFile(const std::filesystem::path& folder)
    : path_(new_name(made(folder))),
      file_(std::make_unique<Descriptor>(Place(path_).open_to_append())),
      flushed_(std::chrono::steady_clock::now()) {
  for (std::string* text : {&event_, &values_, &value_}) text->reserve(longest_event);
  begin_event(0);
  add_text(event_, event_file_version, "brain.Event:2");
  add_record(event_);
  flush();
}

TensorBoardFile::~TensorBoardFile() {
  try {
    flush();
  } catch (const ResourceError&) {  // a destructor cannot say it; who must know calls flush before
  }
}

void TensorBoardFile::on_start(const StartReport& report) {
  const std::string& name = report.metric.name;
  if (!name.empty()) tags_ = {"train/" + name, "epoch/" + name, "test/" + name, "validation/" + name};
  step_ = report.step;
  if (report.step == 0) return;
  begin_event(report.step + 1);
  add_text(event_, event_session_log, session_starts);
  add_record(event_);
}

void TensorBoardFile::on_step(const StepReport& report) {
  step_ = report.step;
  begin_event(report.step);
  if (!std::isnan(report.loss)) {  // a step without it
    add_value("train/loss", report.loss);
    add_value(tags_.train, report.metric);
  }
  add_value("learning_rate", report.learning_rate);
  if (report.seconds > 0) add_value("samples_per_second", static_cast<double>(report.samples) / report.seconds);
  end_event();
  if (std::chrono::steady_clock::now() - flushed_ >= std::chrono::seconds(1)) flush();
}

void TensorBoardFile::on_epoch(const EpochReport& report) {
  begin_event(step_);
  add_value("epoch/loss", report.train_loss);
  add_value(tags_.epoch, report.train_metric);
  if (report.evaluated) {
    add_value("test/loss", report.test_loss);
    add_value(tags_.test, report.test_metric);
  }
  if (report.validated) {
    add_value("validation/loss", report.validation_loss);
    add_value(tags_.validation, report.validation_metric);
  }
  end_event();
  add_metrics("test/", report.test_metrics);
  add_metrics("validation/", report.validation_metrics);
  flush();
}

void TensorBoardFile::add_metrics(const std::string& data, const std::vector<MetricValue>& metrics) {
  for (const MetricValue& value : metrics) {
    if (!value.is_number()) continue;
    begin_event(step_);
    add_value(data + value.metric.name, value.number());
    end_event();
  }
}

void TensorBoardFile::begin_event(std::uint64_t step) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  event_.clear();
  values_.clear();
  add_key(event_, event_wall_time, Wire::fixed64);
  add_bytes(event_, now.count());
  add_key(event_, event_step, Wire::varint);
  add_varint(event_, step);
}

void TensorBoardFile::add_value(std::string_view tag, double value) {
  if (tag.empty()) return;
  value_.clear();
  add_text(value_, value_tag, tag);
  add_key(value_, value_simple, Wire::fixed32);
  add_bytes(value_, static_cast<float>(value));
  add_text(values_, summary_value, value_);
}

void TensorBoardFile::end_event() {
  add_text(event_, event_summary, values_);
  add_record(event_);
}

/// Its length, a check of that, the event, a check of that.
void TensorBoardFile::add_record(std::string_view event) {
  value_.clear();
  add_bytes(value_, static_cast<std::uint64_t>(event.size()));
  add_bytes(value_, masked_crc(value_));
  value_ += event;
  add_bytes(value_, masked_crc(event));
  if (buffer_.size() - used_ < value_.size()) flush();
  std::memcpy(buffer_.data() + used_, value_.data(), value_.size());
  used_ += value_.size();
}

void TensorBoardFile::flush() {
  flushed_ = std::chrono::steady_clock::now();
  const auto bytes = std::as_bytes(std::span(buffer_)).first(std::exchange(used_, 0));
  if (const int error = write_all(file_->number(), bytes); error != 0)
    throw ResourceError("cannot write " + path_.string() + ": " + std::strerror(error));
}

}  // namespace ronda
