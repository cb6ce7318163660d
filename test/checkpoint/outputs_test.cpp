#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <vector>

#include <ronda/core/data_files.hpp>
#include <ronda/core/error.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/outputs.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;

namespace outputs_test {
namespace {

namespace fs = std::filesystem;

void refused(const std::vector<Output>& outputs, const std::vector<fs::path>& inputs,
             std::initializer_list<std::string_view> texts) {
  require_mentions(message_of<InputError>([&] { require_apart(outputs, inputs); }), texts);
}

}  // namespace

TEST_CASE("an output is no file that is read, by whatever path it is named") {
  const TemporaryFolder folder;
  write_file(folder / "data", "1");
  fs::create_directory(folder / "sub");
  fs::create_symlink(folder / "data", folder / "link");
  fs::create_hard_link(folder / "data", folder / "hard");
  fs::create_directory_symlink(folder.path(), folder / "sub/up");
  for (const char* name : {"data", "link", "hard", "sub/../data", "sub/up/data", "./data"})
    refused({{"--save", folder / name}}, {folder / "data"}, {"--save ", "would overwrite an input", name});
  REQUIRE_NOTHROW(require_apart({{"--save", folder / "new"}, {"--json", {}}}, {folder / "data", {}}));
}

TEST_CASE("an output does not lie in a folder that is read as a whole, and may lie beside files that are read") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "pictures/cats");
  write_file(folder / "table", "1");
  for (const char* name : {"pictures", "pictures/model", "pictures/cats/new/deep"}) {
    refused({{setting("save"), folder / name}}, {folder / "pictures"}, {".save = ", "would overwrite an input"});
    refused({{setting("tensorboard"), folder / name, true}}, {folder / "pictures"}, {".tensorboard = "});
  }
  REQUIRE_NOTHROW(require_apart({{setting("save"), folder / "model"}, {setting("checkpoint_dir"), folder.path(), true}},
                                {folder / "pictures", folder / "table"}));
}

TEST_CASE("files that this process has read data from are inputs of every program") {
  const TemporaryFolder folder;
  write_file(folder / "noted", "1");
  note_data_file(folder / "noted");
  note_data_file(folder / "missing");
  refused({{"--json", folder / "noted"}}, {}, {"--json", "noted"});
  REQUIRE_NOTHROW(require_apart({{"--json", folder / "missing"}}));
}

TEST_CASE("an output may take the place of an input where it says so, by that output alone") {
  const TemporaryFolder folder;
  write_file(folder / "model", "1");
  REQUIRE_NOTHROW(require_apart({{setting("save"), folder / "model", false, folder / "model"}}, {folder / "model"}));
  refused({{setting("metrics"), folder / "model"}}, {folder / "model"}, {".metrics"});
  note_data_file(folder / "model");
  REQUIRE_NOTHROW(require_apart({{setting("save"), folder / "model", false, folder / "model"}}));
}

TEST_CASE("outputs are files of their own, before they exist too; pipes and devices are not") {
  const TemporaryFolder folder;
  fs::create_symlink(folder / "later", folder / "dangling");
  fs::create_directory(folder / "run");
  refused({{setting("save"), folder / "both"}, {setting("metrics"), folder / "run/../both"}}, {},
          {".save and .metrics are one file"});
  refused({{setting("save"), folder / "later"}, {setting("metrics"), folder / "dangling"}}, {},
          {".save and .metrics are one file"});
  refused({{setting("save"), folder / "run"}, {setting("tensorboard"), folder / "run", true}}, {},
          {".save and .tensorboard"});
  REQUIRE_NOTHROW(require_apart({{setting("save"), "/dev/null"}, {setting("metrics"), "/dev/null"}}, {"/dev/null"}));
  REQUIRE_NOTHROW(require_apart({{setting("metrics"), folder / "run/metrics"},
                                 {setting("tensorboard"), folder / "run", true},
                                 {setting("checkpoint_dir"), folder / "run", true}}));
}

TEST_CASE("an output is no part of a checkpoint, nor has a name that checkpoints take") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "saved/step-5");
  write_file(manifest_of(folder / "saved/step-5"), "{}");
  write_file(folder / "saved/.lock", "");
  for (const char* name : {"saved/step-5", "saved/step-5/part-0.safetensors", "saved/step-5/new"})
    refused({{setting("save"), folder / name}}, {}, {".save = ", "a part of the checkpoint", "step-5"});
  for (const char* name : {"saved/step-6", "saved/best-step-5.safetensors", "saved/.lock"})
    refused({{setting("save"), folder / name}}, {}, {"a name that is kept for the checkpoints"});
  refused({{setting("save"), folder / "first/step-1"}, {setting("checkpoint_dir"), folder / "first", true}}, {},
          {"a name that is kept"});
  REQUIRE_NOTHROW(
      require_apart({{setting("save"), folder / "saved/model"}, {setting("checkpoint_dir"), folder / "saved", true}}));
  REQUIRE_NOTHROW(require_apart({{setting("save"), folder / "step-1"}}));
}

}  // namespace outputs_test
