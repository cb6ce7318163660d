// Scalars for TensorBoard, read back by a reader of records and messages that is written here from their description.
// test/system/tensorboard.sh has TensorBoard itself read them.
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/runtime/io/tensorboard_file.hpp>

#include "support/catch.hpp"
#include "support/memory.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

template <class T>
T take(std::string_view& from) {
  T value;
  REQUIRE(from.size() >= sizeof value);
  std::memcpy(&value, from.data(), sizeof value);
  from.remove_prefix(sizeof value);
  return value;
}

/// CRC-32C bit by bit, as it is defined: no table.
std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0x82f63b78 & (0 - (crc & 1)));
  }
  return ~crc;
}
std::uint32_t masked(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8; }

std::uint64_t take_varint(std::string_view& from) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take<unsigned char>(from);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

struct Message {
  std::map<unsigned, std::uint64_t> numbers;  ///< varints and fixed ones, as bits
  std::map<unsigned, std::vector<std::string_view>> texts;
};

Message parse(std::string_view bytes) {
  Message message;
  while (!bytes.empty()) {
    const std::uint64_t key = take_varint(bytes);
    const auto field = static_cast<unsigned>(key >> 3);
    switch (key & 7) {
      case 0: message.numbers[field] = take_varint(bytes); break;
      case 1: message.numbers[field] = take<std::uint64_t>(bytes); break;
      case 5: message.numbers[field] = take<std::uint32_t>(bytes); break;
      case 2: {
        const std::uint64_t size = take_varint(bytes);
        REQUIRE(size <= bytes.size());
        message.texts[field].push_back(bytes.substr(0, size));
        bytes.remove_prefix(size);
        break;
      }
      default: FAIL("a field of type " << (key & 7));
    }
  }
  return message;
}

struct Found {
  std::uint64_t step = 0;
  bool restart = false;
  std::string version;
  std::map<std::string, float> values;
};

std::vector<Found> read_events(const std::string& file) {
  std::vector<Found> events;
  std::string_view rest = file;
  while (!rest.empty()) {
    const std::string_view length_bytes = rest.substr(0, 8);
    const auto length = take<std::uint64_t>(rest);
    CHECK(take<std::uint32_t>(rest) == masked(crc32c(length_bytes)));
    REQUIRE(length <= rest.size());
    const std::string_view bytes = rest.substr(0, length);
    rest.remove_prefix(length);
    CHECK(take<std::uint32_t>(rest) == masked(crc32c(bytes)));
    const Message event = parse(bytes);
    Found found;
    found.step = event.numbers.at(2);
    double wall = 0;
    const std::uint64_t bits = event.numbers.at(1);
    std::memcpy(&wall, &bits, sizeof wall);
    CHECK(wall > 1.5e9);
    if (event.texts.contains(3)) found.version = event.texts.at(3).front();
    if (event.texts.contains(7)) found.restart = parse(event.texts.at(7).front()).numbers.at(1) == 1;
    const Message summary = event.texts.contains(5) ? parse(event.texts.at(5).front()) : Message();
    for (const auto& [field, values] : summary.texts)
      for (const std::string_view value : values) {
        REQUIRE(field == 1);
        const Message scalar = parse(value);
        const auto number = static_cast<std::uint32_t>(scalar.numbers.at(2));
        std::memcpy(&found.values[std::string(scalar.texts.at(1).front())], &number, sizeof number);
      }
    events.push_back(std::move(found));
  }
  return events;
}

StepReport scalars_of(std::uint64_t step) {
  StepReport report;
  report.step = step;
  report.epoch = 1;
  report.loss = 1.0 / static_cast<double>(step);
  report.metric = 0.75;
  report.learning_rate = 0.1;
  report.samples = 64;
  report.seconds = 0.5;
  return report;
}

}  // namespace

TEST_CASE("the check of a record is CRC-32C") { REQUIRE(crc32c("123456789") == 0xe3069283); }  // of its standard

TEST_CASE("steps and epochs are events with their scalars") {
  const TemporaryFolder folder;
  TensorBoardFile file(folder / "a/b");
  file.on_start({.metric = {"accuracy", true}});
  for (const std::uint64_t step : {std::uint64_t{1}, std::uint64_t{300}, std::uint64_t{1} << 40})
    file.on_step(scalars_of(step));
  EpochReport epoch;
  epoch.train_loss = 0.5;
  epoch.train_metric = 0.25;
  epoch.test_loss = std::numeric_limits<double>::infinity();
  epoch.test_metric = std::nan("");
  epoch.evaluated = true;
  epoch.test_metrics = {{{"top5"}, {0.5}}, {{"confusion_matrix"}, {1, 2, 3, 4}, {2, 2}}};
  epoch.validation_metrics = {{{"r2"}, {0.75}}};
  file.on_epoch(epoch);
  const auto events = read_events(read_file(file.path()));
  REQUIRE(events.size() == 7);
  CHECK(events[5].values == std::map<std::string, float>{{"test/top5", 0.5F}});
  CHECK(events[6].values == std::map<std::string, float>{{"validation/r2", 0.75F}});
  CHECK(events[6].step == events[3].step);
  CHECK(events[0].version == "brain.Event:2");
  CHECK(events[1].step == 1);
  CHECK(events[2].step == 300);
  CHECK(events[3].step == std::uint64_t{1} << 40);
  CHECK(events[2].values.size() == 4);
  CHECK(events[2].values.at("train/loss") == static_cast<float>(1.0 / 300));
  CHECK(events[2].values.at("train/accuracy") == 0.75F);
  CHECK(events[2].values.at("learning_rate") == 0.1F);
  CHECK(events[2].values.at("samples_per_second") == 128);
  CHECK(events[4].step == events[3].step);
  CHECK(events[4].values.at("epoch/loss") == 0.5F);
  CHECK(events[4].values.at("epoch/accuracy") == 0.25F);
  CHECK(std::isinf(events[4].values.at("test/loss")));
  CHECK(std::isnan(events[4].values.at("test/accuracy")));
  CHECK_FALSE(events[4].values.contains("validation/loss"));
}

TEST_CASE("a run that goes on has a file of its own, which begins with a restart") {
  const TemporaryFolder folder;
  TensorBoardFile first(folder.path()), second(folder.path());
  CHECK(first.path() != second.path());
  first.on_start({});
  second.on_start({.step = 7});
  second.on_step(scalars_of(8));
  first.flush();
  second.flush();
  CHECK(read_events(read_file(first.path())).size() == 1);
  const auto events = read_events(read_file(second.path()));
  REQUIRE(events.size() == 3);
  CHECK(events[1].restart);
  CHECK(events[1].step == 8);
  CHECK_FALSE(events[2].values.contains("train/"));  // this loss measures nothing else
  CHECK(events[2].values.size() == 3);
}

TEST_CASE("many steps arrive, in order, and none of them allocates") {
  const TemporaryFolder folder;
  TensorBoardFile file(folder.path());
  file.on_start({.metric = {"accuracy", true}});
  file.on_step(scalars_of(1));
  const long before = allocations();
  for (std::uint64_t step = 2; step <= 2000; ++step) file.on_step(scalars_of(step));
  CHECK(allocations() == before);
  file.on_checkpoint(2000);
  const auto events = read_events(read_file(file.path()));
  REQUIRE(events.size() == 2001);
  for (std::size_t i = 1; i < events.size(); ++i) REQUIRE(events[i].step == i);
}

TEST_CASE("a folder that cannot be made is said") {
  const TemporaryFolder folder;
  write_file(folder / "file", "");
  require_mentions(message_of<InputError>([&] { TensorBoardFile(folder / "file/logs"); }), {"file/logs"});
}
