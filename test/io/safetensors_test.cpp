#include <cmath>
#include <cstring>
#include <limits>

#include <ronda/core/error.hpp>
#include <ronda/runtime/io/safetensors.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

/// A file as text, from its header and the number of its data bytes.
std::string file_of(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string text(sizeof length, '\0');
  std::memcpy(text.data(), &length, sizeof length);
  return text + header + std::string(data_bytes, '\0');
}

std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

}  // namespace

TEST_CASE("what was written is read back, bit for bit") {
  const TemporaryFolder folder;
  const std::vector<NamedTensor> tensors{
      {"conv1.weight", Shape{2, 1, 1, 3}, {1, -0.0F, 3.5F, std::numeric_limits<float>::infinity(), 1e-42F, 6}},
      {"empty", Shape{0, 4}, {}},
      {"scalar", Shape{}, {42}},
      {"counter", Shape{}, {}, {-3}},
      {"counters", Shape{2}, {}, {std::numeric_limits<std::int64_t>::max(), 1}},
      {"quantised", Shape{3}, {}, {}, {-127, 0, 127}},
      {"ünï \"code\"", Shape{1}, {7}}};
  write_safetensors(folder / "file", tensors, {{"format", "pt"}});
  const Safetensors read = read_safetensors(folder / "file");
  REQUIRE(read.metadata.at("format") == "pt");
  REQUIRE(read.tensors.size() == tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    REQUIRE(read.tensors[i].name == tensors[i].name);
    REQUIRE(read.tensors[i].shape == tensors[i].shape);
    REQUIRE(read.tensors[i].values == tensors[i].values);
    REQUIRE(read.tensors[i].integers == tensors[i].integers);
    REQUIRE(read.tensors[i].bytes == tensors[i].bytes);
  }
  REQUIRE(std::signbit(read.tensors[0].values[1]));
}

TEST_CASE("a float64 tensor is written whole") {
  const TemporaryFolder folder;
  const std::vector<double> numbers{1700000000.25, 0.1};
  write_safetensors(folder / "file", std::vector<NamedTensor>{{.name = "a", .shape = Shape{2}, .doubles = numbers}});
  const std::string text = read_file(folder / "file");
  REQUIRE(text.find(R"("dtype":"F64","shape":[2],"data_offsets":[0,16])") != std::string::npos);
  std::vector<double> read(2);
  std::memcpy(read.data(), text.data() + text.size() - 16, 16);
  REQUIRE(read == numbers);
  require_mentions(message_of<LogicError>([&] {
                     write_safetensors(
                         folder / "two",
                         std::vector<NamedTensor>{{.name = "a", .shape = Shape{2}, .values = {1}, .doubles = {1}}});
                   }),
                   {"two types"});
}

TEST_CASE("a file is laid out as the format says") {
  const TemporaryFolder folder;
  write_safetensors(folder / "file", std::vector<NamedTensor>{{"a", Shape{2}, {1, 2}}, {"b", Shape{1}, {3}}});
  const std::string text = read_file(folder / "file");
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), sizeof length);
  REQUIRE(length % 8 == 0);
  REQUIRE(text.size() == 8 + length + 12);
  const std::string expected =
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})";
  const std::string header = text.substr(8, length);
  REQUIRE(header.substr(0, expected.size()) == expected);
  REQUIRE(header.find_first_not_of(' ', expected.size()) == std::string::npos);
}

TEST_CASE("nothing of a damaged file is accepted") {
  const TemporaryFolder folder;
  const auto path = folder / "file";
  const auto message = [&](const std::string& content) {
    write_file(path, content);
    return message_of<InputError>([&] { (void)read_safetensors(path); });
  };
  const auto of = [&](const std::string& header, std::size_t bytes) { return message(file_of(header, bytes)); };
  const std::string a8 = R"({"a":)" + tensor("F32", "[2]", "[0,8]");

  REQUIRE(of(a8 + "}", 8).empty());  // this one is sound; below, each has one fault
  require_mentions(message("abc"), {"file", "at least 8 bytes", "found 3"});
  require_mentions(message(file_of(a8 + "}", 8).substr(0, 30)), {"promise a header", "30"});
  require_mentions(message(std::string(8, '\xff') + "{}"), {"promise a header"});
  require_mentions(of("{\"a\":", 0), {"JSON"});
  require_mentions(of("[1]", 0), {"JSON object"});
  require_mentions(of(a8 + R"(,"a":)" + tensor("F32", "[0]", "[8,8]") + "}", 8), {"\"a\"", "twice"});
  require_mentions(of(R"({"a":{"dtype":"F32","shape":[2]}})", 8), {"'a'", "data_offsets"});
  require_mentions(of(R"({"a":)" + tensor("F16", "[4]", "[0,8]") + "}", 8), {"'a'", "F32", "F16"});
  require_mentions(of(R"({"a":)" + tensor("I8", "[2]", "[0,8]") + "}", 8), {"'a'", "[2]", "2 bytes", "8"});
  require_mentions(of(R"({"a":)" + tensor("I64", "[2]", "[0,8]") + "}", 8), {"'a'", "[2]", "16", "8"});
  require_mentions(of(R"({"a":)" + tensor("F32", "[3]", "[0,8]") + "}", 8), {"'a'", "[3]", "12", "8"});
  require_mentions(of(R"({"a":)" + tensor("F32", "[-2]", "[0,8]") + "}", 8), {"'a'", "shape"});
  require_mentions(of(R"({"a":)" + tensor("F32", "[4294967296,4294967296]", "[0,8]") + "}", 8), {"overflows"});
  require_mentions(of(R"({"a":)" + tensor("F32", "[0,18446744073709551615]", "[0,0]") + "}", 0), {"overflows"});
  require_mentions(of(R"({"a":)" + tensor("F32", "[1,1,1,1,1,1,2]", "[0,8]") + "}", 8), {"7 axes"});
  require_mentions(of(R"({"a":)" + tensor("F32", "[2]", "[8,0]") + "}", 8), {"'a'", "data_offsets"});
  require_mentions(of(a8 + "}", 7), {"'a'", "7 bytes"});
  require_mentions(of(a8 + "}", 9), {"take 8 bytes", "found 9"});
  require_mentions(of(a8 + R"(,"b":)" + tensor("F32", "[2]", "[4,12]") + "}", 12), {"'b'", "overlap"});
  require_mentions(of(a8 + R"(,"b":)" + tensor("F32", "[1]", "[12,16]") + "}", 16), {"'b'", "gap"});
  require_mentions(of(R"({"__metadata__":{"a":1}})", 0), {"__metadata__"});
  std::filesystem::remove(path);
  require_mentions(message_of<InputError>([&] { (void)read_safetensors(path); }), {"cannot open", "No such file"});
  require_mentions(message_of<InputError>([&] { (void)read_safetensors(folder.path()); }), {"Is a directory"});
}

TEST_CASE("whole numbers are not read as floats, nor floats as whole numbers") {
  const TemporaryFolder folder;
  write_safetensors(folder / "file", std::vector<NamedTensor>{{"a", Shape{1}, {1}}, {"b", Shape{}, {}, {2}}});
  SafetensorsFile file(folder / "file");
  require_mentions(message_of<InputError>([&] { (void)file.read_integers(file.entries()[0]); }), {"'a'", "F32", "I64"});
  require_mentions(message_of<InputError>([&] { (void)file.read(file.entries()[1]); }), {"'b'", "F32", "I64"});
  REQUIRE(file.read_integers(file.entries()[1]) == std::vector<std::int64_t>{2});
}

TEST_CASE("tensors that contradict themselves are not written") {
  const TemporaryFolder folder;
  const auto write = [&](std::vector<NamedTensor> tensors) { write_safetensors(folder / "file", tensors); };
  REQUIRE_THROWS_AS(write({{"a", Shape{2}, {1}}}), LogicError);
  REQUIRE_THROWS_AS(write({{"a", Shape{2}, {1}, {1}}}), LogicError);
  REQUIRE_THROWS_AS(write({{"a", Shape{1}, {1}}, {"a", Shape{1}, {1}}}), LogicError);
  REQUIRE_FALSE(std::filesystem::exists(folder / "file"));
}
