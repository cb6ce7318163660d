#include <bit>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/data/mnist.hpp>

#include "data/files.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

/// An IDX file as text; the magic number is right unless given.
std::string idx(const std::vector<std::uint32_t>& extents, std::string_view data, std::uint32_t magic = 0) {
  std::string text = big_endian(magic != 0 ? magic : 0x800 + static_cast<std::uint32_t>(extents.size()));
  for (const auto extent : extents) text += big_endian(extent);
  return text.append(data);
}

/// A whole data set of 2 × 2 images: three for training, two for testing.
void write_set(const TemporaryFolder& folder) {
  write_file(folder / "train-images-idx3-ubyte", idx({3, 2, 2}, "abcdefghijkl"));
  write_file(folder / "train-labels-idx1-ubyte", idx({3}, std::string_view("\0\1\2", 3)));
  write_file(folder / "t10k-images-idx3-ubyte.gz", gzipped(idx({2, 2, 2}, "mnopqrst")));
  write_file(folder / "t10k-labels-idx1-ubyte.gz", gzipped(idx({2}, std::string_view("\3\4", 2))));
}

}  // namespace

TEST_CASE("plain and gzipped files give the same") {
  const TemporaryFolder folder;
  const std::string content = idx({2, 3}, "abcdef");
  write_file(folder / "plain", content);
  write_file(folder / "zipped", gzipped(content));
  for (const char* name : {"plain", "zipped"}) {
    const IdxArray array = read_idx(folder / name, 2);
    REQUIRE(array.shape == Shape{2, 3});
    REQUIRE(std::string(array.values().begin(), array.values().end()) == "abcdef");
  }
}

TEST_CASE("a damaged IDX file is refused with file, expectation and finding") {
  const TemporaryFolder folder;
  const auto path = folder / "file";
  const auto message = [&](const std::string& content) {
    write_file(path, content);
    return message_of<InputError>([&] { (void)read_idx(path, 2); });
  };
  const std::string good = idx({2, 3}, "abcdef"), zipped = gzipped(good);
  require_mentions(message(""), {"file", "header of 12 bytes", "found 0"});
  require_mentions(message(idx({2, 3}, "abcdef", 0xd02)), {"magic number 2050", "found 3330"});
  require_mentions(message(idx({2, 3}, "abcde")), {"6 bytes", "(2, 3)", "found only 5"});
  require_mentions(message(idx({2, 3}, "abcdefg")), {"more data than the 6 bytes"});
  require_mentions(message(idx({0xffffffff, 0xffffffff}, "abc")), {"promises dimensions"});
  require_mentions(message(idx({0xffff, 0xffff}, "abc")), {"found only 3"});  // and no 4 GB for it
  require_mentions(message(zipped.substr(0, zipped.size() - 10)), {"gzip stream"});
  std::string wrong_sum = zipped;
  wrong_sum[wrong_sum.size() - 6] ^= 1;
  require_mentions(message(wrong_sum), {"gzip stream", "fetch it anew"});
  std::filesystem::remove(path);
  require_mentions(message_of<InputError>([&] { (void)read_idx(path, 2); }), {"cannot open", "file"});
  require_mentions(message_of<InputError>([&] { (void)read_idx(folder.path(), 2); }), {"is a directory"});
}

TEST_CASE("a set is loaded from files with and without .gz") {
  const TemporaryFolder folder;
  write_set(folder);
  const Mnist mnist = load_mnist(folder.path());
  REQUIRE(mnist.train.size() == 3);
  REQUIRE(mnist.test.size() == 2);
  REQUIRE(mnist.train.fields()[0].shape == Shape{2, 2, 1});
  REQUIRE(mnist.train.fingerprint() != mnist.test.fingerprint());
  Batch batch(mnist.test.fields(), 2);
  mnist.test.read({std::vector<std::uint64_t>{1, 0}}, batch);
  REQUIRE(batch.input().as<float>()[0] == static_cast<float>('q') / 255.0F);
  REQUIRE(batch.target().as<std::int32_t>()[1] == 3);
}

TEST_CASE("a set that does not fit together is refused") {
  const TemporaryFolder folder;
  write_set(folder);
  const auto message = [&] { return message_of<InputError>([&] { (void)load_mnist(folder.path()); }); };
  SECTION("fewer labels than images") {
    write_file(folder / "train-labels-idx1-ubyte", idx({2}, std::string_view("\0\1", 2)));
    require_mentions(message(), {"train-images", "3 images", "2 labels"});
  }
  SECTION("a label out of range") {
    write_file(folder / "train-labels-idx1-ubyte", idx({3}, std::string_view("\0\12\2", 3)));
    require_mentions(message(), {"train-labels", "from 0 to 9", "found 10", "sample 1"});
  }
  SECTION("images of two sizes") {
    write_file(folder / "t10k-images-idx3-ubyte.gz", idx({2, 2, 1}, "mnop"));
    require_mentions(message(), {"one size", "(2, 2, 1)", "(2, 1, 1)"});
  }
  SECTION("no images") {
    write_file(folder / "train-images-idx3-ubyte", idx({0, 2, 2}, ""));
    write_file(folder / "train-labels-idx1-ubyte", idx({0}, ""));
    require_mentions(message(), {"expected images"});
  }
  SECTION("a file missing") {
    std::filesystem::remove(folder / "train-labels-idx1-ubyte");
    require_mentions(message(), {"train-labels-idx1-ubyte.gz", "MNIST's four files"});
  }
  SECTION("no folder") {
    require_mentions(message_of<InputError>([&] { (void)load_mnist(folder / "nowhere"); }),
                     {"nowhere", "MNIST's four files"});
  }
}

TEST_CASE("every pixel becomes the float nearest to pixel / 255") {
  IdxArray pixels{Shape{1, 16, 16}, Buffer::host(256)};
  std::iota(pixels.values().begin(), pixels.values().end(), std::uint8_t{0});
  const MnistDataset data(std::move(pixels), {Shape{1}, Buffer::host(1)}, "test");
  Batch batch(data.fields(), 1);
  data.read({std::vector<std::uint64_t>{0}}, batch);
  for (std::size_t i = 0; i < 256; ++i)
    REQUIRE(std::bit_cast<std::uint32_t>(batch.input().as<float>()[i]) ==
            std::bit_cast<std::uint32_t>(static_cast<float>(i) / 255.0F));
}

TEST_CASE("the MNIST files of the repository are MNIST") {
  const Mnist mnist = load_mnist(RONDA_MNIST);
  REQUIRE(mnist.train.size() == 60000);
  REQUIRE(mnist.test.size() == 10000);
  REQUIRE(mnist.train.fields()[0].shape == Shape{28, 28, 1});
  Batch batch(mnist.train.fields(), 5);
  mnist.train.read({std::vector<std::uint64_t>{0, 1, 2, 3, 4}}, batch);
  const auto labels = batch.target().as<std::int32_t>();
  REQUIRE(std::vector<std::int32_t>(labels.begin(), labels.end()) == std::vector<std::int32_t>{5, 0, 4, 1, 9});
}

TEST_CASE("dimensions whose product overflows are refused, also beside a 0") {
  const TemporaryFolder folder;
  constexpr std::uint32_t most = 0xffffffff;
  for (const auto& extents :
       {std::vector<std::uint32_t>{0, most, most}, {most, most, 0}, {most, most, most}, {most, 0, most}}) {
    write_file(folder / "file", idx(extents, ""));
    require_mentions(message_of<InputError>([&] { (void)read_idx(folder / "file", 3); }),
                     {"file", "promises dimensions"});
  }
  write_file(folder / "file", idx({0, 28, 28}, ""));
  CHECK(read_idx(folder / "file", 3).values().empty());
}
