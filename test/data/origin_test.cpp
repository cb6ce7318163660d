// A sample's file, which messages about the sample name.
#include <cstring>
#include <memory>

#include <ronda/data/dataset_part.hpp>
#include <ronda/data/labelled_text.hpp>
#include <ronda/data/mixup.hpp>
#include <ronda/data/numpy.hpp>
#include <ronda/data/picture_files.hpp>
#include <ronda/data/text_windows.hpp>
#include <ronda/data/transform.hpp>

#include "data/files.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

MemoryDataset labelled(const std::string& file) {
  MemoryDataset data({1, 2, 3}, Shape{1}, {0, 1, 0});
  data.set_origin(file);
  return data;
}

}  // namespace

TEST_CASE("a sample's files have names, in parts and changed copies of a dataset too") {
  const TemporaryFolder folder;
  const auto written = [&](const char* name, const std::string& content) {
    write_file(folder / name, content);
    return folder / name;
  };
  const auto inputs = written("inputs.npy", npy("|u1", "(2, 1)", "ab"));
  const auto targets = written("targets.npy", npy("|u1", "(2,)", std::string(2, '\0')));
  CHECK(NumpyDataset(read_npy(inputs), read_npy(targets)).origin(1) == inputs.string() + ", " + targets.string());

  const auto lines = written("lines.tsv", "0\tone\n1\ttwo\n");
  CHECK(tokenized(read_labelled_text(lines, {.header = false}), HashedWords(16), 2).origin(0) == lines.string());

  const auto text = written("text.txt", "to be or not to be");
  CHECK(TextWindows(text, 4).origin(0) == text.string());

  const PictureFiles pictures({"a.png", "b.png"});
  CHECK(DatasetPart(pictures, {1}).origin(0) == "b.png");

  const MemoryDataset whole = labelled("table.csv");
  CHECK(TransformedDataset(whole, {}).origin(2) == "table.csv");
  CHECK(MixupDataset(whole, 0.5, 2).origin(2) == "table.csv");
  CHECK(MemoryDataset({1, 2}, Shape{1}, {0, 1}).origin(0).empty());
}
