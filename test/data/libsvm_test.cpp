// Tables in the text format of LIBSVM: what is read of them, and what is said of damaged ones.
#include <limits>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/data/libsvm.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;

namespace libsvm_test {
namespace {

LibsvmTable table_of(const std::string& text, const LibsvmOptions& options = {}) {
  const TemporaryFolder folder;
  write_file(folder / "table", text);
  return read_libsvm(folder / "table", options);
}

std::string refusal(const std::string& text, const LibsvmOptions& options = {}) {
  return message_of<InputError>([&] { static_cast<void>(table_of(text, options)); });
}

}  // namespace

TEST_CASE("a table of LIBSVM is read as dense rows, whatever ends its lines and stands around its fields") {
  for (const char* text : {"+1 1:0.5 3:-2e1\n-1 2:1\n", "+1 1:0.5 3:-2e1\r\n-1 2:1\r\n",
                           "# a remark\n\n 1\t1:.5  3:-20 # 4:4\n\n-1 2:+1", "1 1:0.5 3:-20\r-1 2:1\r"}) {
    INFO(text);
    const LibsvmTable table = table_of(text);
    CHECK(table.features == 3);
    CHECK(table.rows() == 2);
    CHECK(table.labels == std::vector<float>{1, -1});
    CHECK(table.values == std::vector<float>{0.5, 0, -20, 0, 1, 0});
    CHECK(table.row(1)[1] == 1);
  }
}

TEST_CASE("the number of features and the first index can be given") {
  CHECK(table_of("2 1:1\n", {.features = 3}).values == std::vector<float>{1, 0, 0});
  CHECK(table_of("2\n3 0:1 1:2\n", {.first_index = 0}).values == std::vector<float>{0, 0, 1, 2});
  CHECK(table_of("0\n", {.features = 2}).values == std::vector<float>{0, 0});
  CHECK(table_of("0.25 1:1e-60\n").values == std::vector<float>{0});
}

TEST_CASE("labels become the numbers of classes") {
  const LibsvmTable table = table_of("7 1:1\n-1 1:1\n7 1:1\n2 1:1\n");
  const std::vector<float> classes = table.classes();
  CHECK(classes == std::vector<float>{-1, 2, 7});
  CHECK(table.class_numbers(classes) == std::vector<std::int32_t>{2, 0, 2, 1});
  const std::vector<float> others{-1, 7};
  require_mentions(message_of<InputError>([&] { static_cast<void>(table.class_numbers(others)); }),
                   {"label 2 of row 3", "2 classes"});
}

TEST_CASE("a damaged table of LIBSVM is refused, with its line") {
  require_mentions(refusal("1 1:1\nx 1:1\n"), {"table, line 2", "'x'", "not a number"});
  require_mentions(refusal("1,2 1:1\n"), {"line 1", "'1,2'", "not a number"});
  require_mentions(refusal("nan 1:1\n"), {"line 1", "'nan'", "finite"});
  require_mentions(refusal("1 1:inf\n"), {"line 1", "'1:inf'", "finite"});
  require_mentions(refusal("1 1:1e39\n"), {"line 1", "'1e39'", "float32"});
  require_mentions(refusal("1 1:\n"), {"line 1", "''", "not a number"});
  require_mentions(refusal("1 1:2x\n"), {"'2x'", "not a number"});
  for (const char* field : {"qid:3", "1", ":1", "-1:1", "1.5:1"})
    require_mentions(refusal("1 " + std::string(field) + "\n"),
                     {"line 1", "expected index:value", "'" + std::string(field) + "'"});
  require_mentions(refusal("1 0:1\n"), {"line 1", "below 1", ".first_index = 0"});
  require_mentions(refusal("1 2:1 1:1\n"), {"'1:1'", "does not ascend"});
  require_mentions(refusal("1 2:1 2:1\n"), {"'2:1'", "does not ascend"});
  require_mentions(refusal("1 4:1\n", {.features = 3}), {"'4:1'", "too large for 3 features"});
  for (const char* index : {"18446744073709551615", "99999999999999999999999"})
    require_mentions(refusal("1 " + std::string(index) + ":1\n"), {"line 1", "too large"});
  require_mentions(refusal("1 1000000000:1\n1 1:1\n"), {"2 rows of 1000000000 features", ".most_bytes"});
  require_mentions(refusal("# nothing\n\n"), {"no samples"});
  require_mentions(refusal("1\n"), {"no features"});
  require_mentions(refusal("1 1:1\n", {.first_index = 2}), {".first_index"});
}

TEST_CASE("a table of LIBSVM with any byte changed or cut off is read or refused") {
  const std::string sound = "+1 1:0.5 3:-2e1\r\n-1 2:1 # x\n";
  for (std::size_t at = 0; at < sound.size(); ++at) {
    for (int byte = 0; byte < 256; byte += 3) {
      std::string damaged = sound;
      damaged[at] = static_cast<char>(byte);
      try {
        const LibsvmTable table = table_of(damaged);
        CHECK(table.values.size() == table.rows() * table.features);
      } catch (const InputError&) {
        continue;
      }
    }
    try {
      static_cast<void>(table_of(sound.substr(0, at)));
    } catch (const InputError&) {
      continue;
    }
  }
}

}  // namespace libsvm_test
