// Tables: what is read of them, and what is said of those that cannot be.
#include <algorithm>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/data/csv.hpp>
#include <ronda/data/dataset_part.hpp>
#include <ronda/data/memory_dataset.hpp>

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
  const std::vector<float> expected{1, 2.5F, -3e-2F, 4, 5, 6};
  for (const char* text : {"a,b,c\n1,2.5,-3e-2\n4,5,6\n", "a,b,c\r\n1,2.5,-3e-2\r\n4,5,6",
                           "\xef\xbb\xbf"
                           "a,b,c\n1,2.5,-3e-2\n\n4,5,6\n\n",
                           "\"a\",b,\"c\"\n 1 ,\"2.5\",-3e-2\n+4,\t5,\"6\"\r\n"}) {
    const CsvTable table = table_of(text);
    CHECK(table.columns == std::vector<std::string>{"a", "b", "c"});
    CHECK(table.values == expected);
    CHECK(table.rows() == 2);
    CHECK(table.row(1)[2] == 6);
  }
  CHECK(table_of("1;2\n3;4", {.separator = ';', .header = false}).columns ==
        std::vector<std::string>{"column 1", "column 2"});
  CHECK(table_of("1;2\n3;4", {.separator = ';', .header = false}).values == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("quoted fields hold separators, quotes and lines") {
  const CsvTable table = table_of("\"the \"\"x\"\", of old\",\"two\nlines\",y\n1,2,3\n");
  CHECK(table.columns == std::vector<std::string>{"the \"x\", of old", "two\nlines", "y"});
  require_mentions(refusal("\"two\nlines\",y\n1,x\n"), {"line 3", "'x'", "'y'"});
}

TEST_CASE("columns that are no numbers can be left out") {
  const CsvTable table = table_of("name,x,y\nan oak,1,2\nan elm,3,4\n", {.ignore = {"name"}});
  CHECK(table.columns == std::vector<std::string>{"x", "y"});
  CHECK(table.values == std::vector<float>{1, 2, 3, 4});
  CHECK(table.column("y") == 1);
  require_mentions(message_of<InputError>([&] { static_cast<void>(table.column("z")); }), {"'z'", "x, y"});
  const CsvTable one = table_of("name,x,y\nan oak,1,2\nan elm,3,4\n", {.only = {"y"}});
  CHECK(one.columns == std::vector<std::string>{"y"});
  CHECK(one.values == std::vector<float>{2, 4});
  require_mentions(refusal("x,y\n1,2\n", {.only = {"x", "z"}}), {"no column 'z'", "x, y"});
}

TEST_CASE("what is wrong with a table is said with its line and column") {
  require_mentions(refusal("x,y\n1,2\n1,oak\n"), {"table.csv, line 3", "'oak'", "column 'y'", "no finite number"});
  for (const char* odd : {"nan", "inf", "1e99", "0x10", "1 2", "1.2.3", "--1", "1f"})
    require_mentions(refusal("x,y\n1," + std::string(odd) + "\n"), {"line 2", odd});
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

TEST_CASE("damaged rows are left out where somebody wants to be told of them") {
  std::vector<std::string> told;
  CsvOptions options;
  options.on_damaged = [&](const InputError& error) { told.emplace_back(error.what()); };
  const CsvTable table = table_of("a,b\n1,2\nx,2\n3\n1,y\n5,6\n", options);
  CHECK(table.values == std::vector<float>{1, 2, 5, 6});
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
