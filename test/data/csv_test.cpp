// Tables: what is read of them, and what is said of those that cannot be.
#include <algorithm>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/data/csv.hpp>
#include <ronda/data/dataset_part.hpp>
#include <ronda/data/memory_dataset.hpp>

#include "data/files.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

CsvTable table_of(const std::string& text, const CsvOptions& options = {}) {
  const TemporaryFolder folder;
  write_file(folder / "table.csv", text);
  return read_csv(folder / "table.csv", options);
}

std::string refusal(const std::string& text, const CsvOptions& options = {}) {
  return message_of<InputError>([&] { static_cast<void>(table_of(text, options)); });
}

}  // namespace

TEST_CASE("a table is read whatever ends its lines and stands around its numbers") {
  const std::vector<double> expected{1, 2.5, -3e-2, 4, 5, 6};
  for (const char* text : {"a,b,c\n1,2.5,-3e-2\n4,5,6\n", "a,b,c\r\n1,2.5,-3e-2\r\n4,5,6",
                           "\xef\xbb\xbf"
                           "a,b,c\n1,2.5,-3e-2\n\n4,5,6\n\n",
                           "a,b,c\r1,2.5,-3e-2\r4,5,6\r", "\"a\",b,\"c\"\n 1 ,\"2.5\",-3e-2\n+4,\t5,\"6\"\r\n"}) {
    const CsvTable table = table_of(text);
    CHECK(table.columns == std::vector<std::string>{"a", "b", "c"});
    CHECK(table.values == expected);
    CHECK(table.rows() == 2);
    CHECK(table.row(1)[2] == 6);
  }
  CHECK(table_of("1;2\n3;4", {.separator = ';', .header = false}).columns ==
        std::vector<std::string>{"column 1", "column 2"});
  CHECK(table_of("1;2\n3;4", {.separator = ';', .header = false}).values == std::vector<double>{1, 2, 3, 4});
}

TEST_CASE("quoted fields hold separators, quotes and lines") {
  const CsvTable table = table_of("\"the \"\"x\"\", of old\",\"two\nlines\",y\n1,2,3\n");
  CHECK(table.columns == std::vector<std::string>{"the \"x\", of old", "two\nlines", "y"});
  require_mentions(refusal("\"two\nlines\",y\n1,x\n"), {"line 3", "'x'", "'y'"});
}

TEST_CASE("columns that are no numbers can be left out") {
  const CsvTable table = table_of("name,x,y\nan oak,1,2\nan elm,3,4\n", {.ignore = {"name"}});
  CHECK(table.columns == std::vector<std::string>{"x", "y"});
  CHECK(table.values == std::vector<double>{1, 2, 3, 4});
  CHECK(table.column("y") == 1);
  require_mentions(message_of<InputError>([&] { static_cast<void>(table.column("z")); }), {"'z'", "x, y"});
  const CsvTable one = table_of("name,x,y\nan oak,1,2\nan elm,3,4\n", {.only = {"y"}});
  CHECK(one.columns == std::vector<std::string>{"y"});
  CHECK(one.values == std::vector<double>{2, 4});
  require_mentions(refusal("x,y\n1,2\n", {.only = {"x", "z"}}), {"no column 'z'", "x, y"});
}

TEST_CASE("what is wrong with a table is said with its line and column") {
  require_mentions(refusal("x,y\n1,2\n1,oak\n"), {"table.csv, line 3", "'oak'", "column 'y'", "no finite number"});
  for (const char* odd : {"nan", "inf", "-Infinity", "0x10", "1 2", "1.2.3", "--1", "+-1", "++1", "1f"})
    require_mentions(refusal("x,y\n1," + std::string(odd) + "\n"), {"line 2", odd});
  for (const char* large : {"1e39", "-1e99", "1e999"})
    require_mentions(refusal("x,y\n1," + std::string(large) + "\n"), {"line 2", large, "too large for a float32"});
  require_mentions(refusal("x,y\n1,\n"), {"line 2", "'y'", "is empty"});
  require_mentions(refusal("x,y\n1,2,3\n"), {"line 2", "expected 2 fields", "found 3"});
  require_mentions(refusal("x,y\n1\n"), {"line 2", "found 1"});
  require_mentions(refusal("x,x\n1,2\n"), {"two columns are called 'x'"});
  require_mentions(refusal("x,y\n1,\"2\n"), {"line 2", "opened and not closed"});
  require_mentions(refusal("x,y\n1,\"2\"3\n"), {"line 2", "'3'"});
  require_mentions(refusal("x,y\n1,2\n", {.ignore = {"z"}}), {"no column 'z'", "x, y"});
  require_mentions(refusal(""), {"is empty"});
  require_mentions(refusal("x,y\n"), {"no rows"});
  require_mentions(message_of<InputError>([] { static_cast<void>(read_csv("/nowhere/table.csv")); }),
                   {"/nowhere/table.csv"});
  require_mentions(message_of<InputError>([] { static_cast<void>(read_csv("/tmp")); }), {"/tmp"});
}

TEST_CASE("numbers of a table are as exact as doubles, and may be as small as any") {
  const CsvTable table = table_of("t,p\n1700000001,1e-50\n16777217,1e-999\n");
  CHECK(table.values == std::vector<double>{1700000001, 1e-50, 16777217, 0});
}

TEST_CASE("a line of numbers is no line of names, but where it counts the columns") {
  for (const char* text : {"1,5,2\n3,4,6\n", "1.5,2.5\n3,4\n", "7,7\n1,2\n", "-1,-2\n1,2\n"})
    require_mentions(refusal(text), {"line 1", "expected names of columns, found numbers", ".header = false"});
  CHECK(table_of("0,1,2\n3,4,6\n").columns == std::vector<std::string>{"0", "1", "2"});
  CHECK(table_of("2019,2020\n3,4\n").rows() == 1);
  CHECK(table_of("2019\n3\n").rows() == 1);
  CHECK(table_of("x,1\n3,4\n").rows() == 1);
}

TEST_CASE("a first line of numbers that count is taken for names, with a remark") {
  for (const char* text : {"1,2\n3,4\n5,6\n", "7,8,9\n1,5,2\n", "2019\n3\n"})
    require_mentions(table_of(text).remark(), {"first line", "names of the columns", ".header = false"});
  for (const char* text : {"a,b\n3,4\n", "x,1\n3,4\n", ",0,1\n7,3,4\n8,5,6\n"}) CHECK(table_of(text).remark().empty());
  CHECK(table_of("1,2\n3,4\n", {.header = false}).remark().empty());
}

TEST_CASE("names of columns are UTF-8, and come to a terminal without control characters") {
  CHECK(table_of("gr\xc3\xb6\xc3\x9f\x65,b\n1,2\n").columns[0] == "gr\xc3\xb6\xc3\x9f\x65");
  require_mentions(refusal("gr\xf6\xdf\x65,b\n1,2\n"), {"line 1", "byte 3 of 'gr??e'", "not UTF-8", "iconv"});
  CHECK(table_of("gr\xf6\xdf\x65,b\n1,2\n", {.only = {"b"}}).rows() == 1);
  const std::string message = refusal("a\x1b[31mRED,b\nx,1\n");
  require_mentions(message, {"'a?[31mRED'"});
  CHECK(message.find('\x1b') == std::string::npos);
  CHECK(refusal("a\x1b[31mRED,b\n1,1\n", {.only = {"z"}}).find('\x1b') == std::string::npos);
}

TEST_CASE("columns that are not read may have any names") {
  CHECK(table_of("b,x,x,a\n1,2,3,4\n", {.only = {"a", "b"}}).values == std::vector<double>{1, 4});
  require_mentions(refusal("b,x,x,a\n1,2,3,4\n", {.only = {"x"}}), {"two columns are called 'x'"});
}

TEST_CASE("a separator is a character of ASCII") {
  for (const char odd : {'"', '\n', '\r', '\xa7'})
    require_mentions(refusal("a,b\n1,2\n", {.separator = odd}), {".separator"});
}

TEST_CASE("damaged rows are left out where somebody wants to be told of them") {
  std::vector<std::string> told;
  CsvOptions options;
  options.on_damaged = [&](const InputError& error) { told.emplace_back(error.what()); };
  const CsvTable table = table_of("a,b\n1,2\nx,2\n3\n1,y\n5,6\n", options);
  CHECK(table.values == std::vector<double>{1, 2, 5, 6});
  REQUIRE(told.size() == 3);
  require_mentions(told[0], {"line 3", "'x'"});
  require_mentions(told[1], {"line 4", "expected 2 fields"});
  require_mentions(told[2], {"line 5", "'y'"});
}

TEST_CASE("a split keeps every sample once, and is the same for the same seed") {
  for (const double share : {0.001, 0.2, 0.5, 0.999})
    for (const std::size_t samples : {std::size_t{2}, std::size_t{3}, std::size_t{100}}) {
      const ValidationSplit split = split_for_validation(samples, share, 3);
      CHECK_FALSE(split.training.empty());
      CHECK_FALSE(split.validation.empty());
      std::vector<std::uint64_t> all = split.training;
      all.insert(all.end(), split.validation.begin(), split.validation.end());
      std::ranges::sort(all);
      REQUIRE(all.size() == samples);
      for (std::size_t i = 0; i < samples; ++i) CHECK(all[i] == i);
      CHECK(split_for_validation(samples, share, 3).validation == split.validation);
    }
  CHECK(split_for_validation(100, 0.2, 3).validation != split_for_validation(100, 0.2, 4).validation);
  CHECK_THROWS_AS(split_for_validation(1, 0.5, 1), InputError);
}

TEST_CASE("a part of a dataset has its samples, in its order") {
  const MemoryDataset data({0, 1, 2, 3, 4}, Shape{1}, {10, 11, 12, 13, 14}, Shape{1});
  const DatasetPart part(data, {4, 1, 3});
  Batch batch(part.fields(), 4);
  const std::vector<std::uint64_t> wanted{2, 0, 0, 1};
  part.read({.samples = wanted}, batch);
  const auto inputs = batch.input().as<float>();
  CHECK(std::vector<float>(inputs.begin(), inputs.end()) == std::vector<float>{3, 4, 4, 1});
  CHECK(part.size() == 3);
  CHECK(part.fingerprint() != data.fingerprint());
  CHECK(part.fingerprint() != DatasetPart(data, {4, 3, 1}).fingerprint());
  CHECK_THROWS_AS(DatasetPart(data, {5}), LogicError);

  const DatasetPart middle(data, 1, 4), listed(data, {1, 2, 3});
  Batch batch_of_list(part.fields(), 4);
  const std::vector<std::uint64_t> three{2, 0, 1, 1};
  middle.read({.samples = three}, batch);
  listed.read({.samples = three}, batch_of_list);
  CHECK(std::ranges::equal(batch.input().as<float>(), batch_of_list.input().as<float>()));
  CHECK(middle.size() == 3);
  CHECK(middle.fingerprint() == listed.fingerprint());
  CHECK(DatasetPart(data, 2, 2).size() == 0);
  CHECK_THROWS_AS(DatasetPart(data, 3, 6), LogicError);
  CHECK_THROWS_AS(DatasetPart(data, 4, 3), LogicError);
}

TEST_CASE("a file in UTF-16, and one with other separators, are refused by what they are") {
  for (const char* mark : {"\xff\xfe", "\xfe\xff", ""}) {
    std::string text = mark;
    for (const char c : std::string("a,b\n1,2\n")) text += std::string(1, c) + '\0';
    require_mentions(refusal(text), {"table.csv", "UTF-16", "iconv"});
  }
  require_mentions(refusal("a;b;y\n1;2;3\n"), {"line 1", "2 times ';'", "--separator ';'", ".separator"});
  require_mentions(refusal("a\tb\n1\t2\n"), {"line 1", "1 times '\\t'", "--separator '\\t'"});
  require_mentions(refusal("a,b\n1,2\n", {.separator = ';'}), {"line 1", "--separator ','"});
  require_mentions(refusal("a;b\n1;2,5\n", {.separator = ';'}), {"line 2", "'2,5'", "a point"});
  CHECK(table_of("a\n1\n").rows() == 1);
}

TEST_CASE("the index of a table that pandas wrote is left out, and nothing else") {
  for (const std::string name : {"", "Unnamed: 0"}) {
    const CsvTable table = table_of(name + ",x,y\n0,5,6\n1,7,8\n");
    CHECK(table.index_left_out);
    CHECK(table.columns == std::vector<std::string>{"x", "y"});
    CHECK(table.values == std::vector<double>{5, 6, 7, 8});
    CHECK(table_of(name + ",x\n0,5\n1,7\n", {.only = {name, "x"}}).values == std::vector<double>{0, 5, 1, 7});
  }
  for (const char* text : {",x\n0,5\n2,7\n", ",x\n1,5\n2,7\n", "n,x\n0,5\n1,7\n", "x,\n5,0\n7,1\n"}) {
    const CsvTable table = table_of(text);
    CHECK_FALSE(table.index_left_out);
    CHECK(table.columns.size() == 2);
  }
}

TEST_CASE("a gzip file has one member or several, and damage anywhere in it is refused") {
  const std::string first = gzipped("a,b\n1,2\n"), second = gzipped("3,4\n"), third = gzipped("5,6\n");
  const std::vector<double> all{1, 2, 3, 4, 5, 6};
  CHECK(table_of(first + second + third).values == all);
  CHECK(table_of(first + second + third + std::string(512, '\0')).values == all);
  for (std::size_t at = first.size(); at < first.size() + second.size(); ++at) {
    if (at >= first.size() + 3 && at < first.size() + 10) continue;  // flags, a time, a system: any value is valid
    std::string damaged = first + second + third;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    INFO(at - first.size());
    require_mentions(refusal(damaged), {"table.csv", "gzip stream"});
  }
  for (const std::string& rest : {std::string("3,4\n"), std::string(3, '\0') + second, second.substr(0, 9)})
    require_mentions(refusal(first + rest), {"table.csv", "gzip stream"});
}
