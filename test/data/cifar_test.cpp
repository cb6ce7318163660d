// Files in the format of CIFAR's binary version, of a few images made here.
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/data/cifar.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

std::uint8_t pixel(int image, int channel, int y, int x) {
  return static_cast<std::uint8_t>(17 * image + 5 * channel + 3 * y + 7 * x * x);
}

/// A record as the files have it: labels, then the planes.
std::string record(const std::vector<int>& labels, int image) {
  std::string bytes;
  for (const int label : labels) bytes += static_cast<char>(label);
  for (int channel = 0; channel < 3; ++channel)
    for (int y = 0; y < 32; ++y)
      for (int x = 0; x < 32; ++x) bytes += static_cast<char>(pixel(image, channel, y, x));
  return bytes;
}

/// Two images in each of the training files, numbers 0 to 9, and three to test with, 10 to 12.
void write_ten(const std::filesystem::path& folder) {
  for (int file = 0; file < 5; ++file)
    write_file(folder / ("data_batch_" + std::to_string(file + 1) + ".bin"),
               record({file}, 2 * file) + record({9}, 2 * file + 1));
  write_file(folder / "test_batch.bin", record({1}, 10) + record({2}, 11) + record({3}, 12));
}

void write_hundred(const std::filesystem::path& folder) {
  write_file(folder / "train.bin", record({19, 99}, 0) + record({0, 1}, 1));
  write_file(folder / "test.bin", record({2, 3}, 2));
}

void check_sample(const Dataset& data, std::uint64_t sample, int image, std::int32_t label) {
  Batch batch(data.fields(), 1);
  data.read({std::vector<std::uint64_t>{sample}}, batch);
  REQUIRE(batch.input().shape() == Shape{1, 32, 32, 3});
  CHECK(batch.target().as<std::int32_t>()[0] == label);
  const float* value = batch.input().pointer<float>();
  for (int y = 0; y < 32; ++y)
    for (int x = 0; x < 32; ++x)
      for (int channel = 0; channel < 3; ++channel)
        REQUIRE(*value++ == static_cast<float>(pixel(image, channel, y, x)) / 255.0F);
}

}  // namespace

TEST_CASE("CIFAR-10's records become pixels with three channels, in the files' order") {
  const TemporaryFolder folder;
  write_ten(folder.path());
  const Cifar cifar = load_cifar10(folder.path());
  REQUIRE(cifar.train.size() == 10);
  REQUIRE(cifar.test.size() == 3);
  for (int i = 0; i < 10; ++i) check_sample(cifar.train, static_cast<std::uint64_t>(i), i, i % 2 == 0 ? i / 2 : 9);
  check_sample(cifar.test, 2, 12, 3);
  const auto stored = cifar.test.stored();
  REQUIRE(stored.size() == 2);
  CHECK(stored[0].bytes.size() == 3 * 3072);
}

TEST_CASE("one of CIFAR-10's files is read by itself, and the classes have the names beside it") {
  const TemporaryFolder folder;
  write_ten(folder.path());
  const ByteImages images = read_cifar10_file(folder / "test_batch.bin");
  REQUIRE(images.size() == 3);
  check_sample(images, 2, 12, 3);
  CHECK(cifar10_classes(folder.path()).empty());
  write_file(folder / "batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  CHECK(cifar10_classes(folder.path()) == std::vector<std::string>{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"});
  write_file(folder / "batches.meta.txt", "a\nb\n");
  CHECK(cifar10_classes(folder.path()).empty());
}

TEST_CASE("a check tells every damaged record and missing file of CIFAR") {
  const TemporaryFolder folder;
  write_ten(folder.path());
  std::vector<std::string> told;
  const auto tell = [&](const InputError& error) { told.emplace_back(error.what()); };
  CHECK(check_cifar10(folder.path(), tell) == 13);
  CHECK(told.empty());
  write_file(folder / "data_batch_2.bin", record({10}, 0) + record({200}, 1));
  write_file(folder / "data_batch_3.bin", record({1}, 0));
  write_file(folder / "test_batch.bin", record({1}, 10) + "x");
  std::filesystem::remove(folder / "data_batch_5.bin");
  CHECK(check_cifar10(folder.path(), tell) == 8);
  REQUIRE(told.size() == 5);
  require_mentions(told[0], {"batch_2.bin", "record 0", "found 10"});
  require_mentions(told[1], {"batch_2.bin", "record 1", "found 200"});
  require_mentions(told[2], {"there is no", "batch_5.bin"});
  require_mentions(told[3], {"batch_3.bin", "expected 2 records"});
  require_mentions(told[4], {"test_batch.bin", "record 1", "found 1 before"});
  told.clear();
  CHECK(check_cifar100(folder.path(), tell) == 0);
  CHECK(told.size() == 2);
}

TEST_CASE("CIFAR-100's records have two labels; the folder of the archive is found") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "cifar-100-binary");
  write_hundred(folder / "cifar-100-binary");
  for (const auto& place : {folder.path(), folder / "cifar-100-binary"}) {
    const Cifar fine = load_cifar100(place), coarse = load_cifar100(place, CifarLabels::coarse);
    REQUIRE(fine.train.size() == 2);
    check_sample(fine.train, 0, 0, 99);
    check_sample(coarse.train, 0, 0, 19);
    check_sample(fine.test, 0, 2, 3);
    check_sample(coarse.test, 0, 2, 2);
  }
}

TEST_CASE("a damaged CIFAR file is refused with file, record, expectation and finding") {
  const TemporaryFolder folder;
  write_ten(folder.path());
  const auto message = [&] { return message_of<InputError>([&] { (void)load_cifar10(folder.path()); }); };
  const auto path = folder / "data_batch_3.bin";
  const std::string good = read_file(path);
  SECTION("cut off within a record") {
    write_file(path, good.substr(0, good.size() - 3));
    require_mentions(message(), {"data_batch_3.bin, record 1", "3073 bytes", "found 3070", "fetch_cifar.sh"});
  }
  SECTION("cut off between two records") {
    write_file(path, good.substr(0, 3073));
    require_mentions(message(), {"data_batch_3.bin", "2 records", "data_batch_1.bin", "found 1"});
  }
  SECTION("shifted by a byte") {
    write_file(path, "\x01" + good.substr(0, good.size() - 1));
    CHECK(good[3072] != 9);  // where the second record's label is then
    require_mentions(message(), {"data_batch_3.bin, record 1", "from 0 to 9"});
  }
  SECTION("a label out of range") {
    std::string bad = good;
    bad[3073] = 10;
    write_file(path, bad);
    require_mentions(message(), {"data_batch_3.bin, record 1", "from 0 to 9", "found 10"});
  }
  SECTION("empty") {
    write_file(path, "");
    require_mentions(message(), {"data_batch_3.bin", "empty"});
  }
  SECTION("missing") {
    std::filesystem::remove(path);
    require_mentions(message(), {"data_batch_3.bin", "CIFAR-10", "fetch_cifar.sh"});
  }
  SECTION("CIFAR-100's labels") {
    write_file(folder / "train.bin", record({20, 5}, 0));
    write_file(folder / "test.bin", record({19, 99}, 0));
    require_mentions(message_of<InputError>([&] { (void)load_cifar100(folder.path()); }),
                     {"train.bin, record 0", "from 0 to 19", "found 20"});
    write_file(folder / "train.bin", record({19, 100}, 0));
    require_mentions(message_of<InputError>([&] { (void)load_cifar100(folder.path()); }),
                     {"from 0 to 99", "found 100"});
  }
}
