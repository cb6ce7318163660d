#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/core/random.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/io/safetensors.hpp>

#include <sys/stat.h>

#include <cmath>
#include <limits>

#include <algorithm>

#include "checkpoint/sample_checkpoint.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;
namespace fs = std::filesystem;

namespace {

std::vector<std::uint64_t> steps_in(const fs::path& directory) {
  std::vector<std::uint64_t> steps;
  for (const auto& place : list_checkpoints(directory)) steps.push_back(place.step);
  return steps;
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// The newest whole checkpoint's step; 0 where there is none. Counts those passed over.
std::uint64_t newest_in(const fs::path& directory, int& passed_over) {
  passed_over = 0;
  const auto place = newest_whole(directory, [&](const CheckpointPlace&, const Error&) { ++passed_over; });
  return place ? place->step : 0;
}

}  // namespace

TEST_CASE("a manifest comes back as it was") {
  const TemporaryFolder folder;
  CheckpointManifest manifest = sample_manifest(1234, 2);
  manifest.ronda = "1.2.3";
  manifest.epoch = 3;
  manifest.step_in_epoch = 200;
  manifest.updates = 1200;
  manifest.samples = std::numeric_limits<std::uint64_t>::max();
  manifest.train_seconds = 0.1 + 0.2;
  manifest.last_loss = 1.0 / 3;
  manifest.environment = {{"processor", "one \"of\" many\n"}};
  manifest.picks = {{"which?", "this"}};
  manifest.metadata = {{"model", "{\"hidden\": [1]}"}};
  manifest.weight = 1e300;
  manifest.current.train_loss = -std::numeric_limits<double>::denorm_min();
  manifest.current.test_loss = std::nan("");
  manifest.history.resize(2);
  manifest.history[1].test_metric = 0.1;
  manifest.history[1].evaluated = true;
  manifest.history[1].test_metrics = {{{"top5", true}, {0.1}}};
  manifest.current.validation_metrics = {{{"r2"}, {std::nan("")}}, {{"confusion_matrix"}, {1, 2, 3, 4}, {2, 2}}};
  manifest.parts.resize(2);
  manifest.parts[0].file = "part-0.safetensors";
  manifest.parts[0].sum.bytes = 12;
  manifest.parts[0].sum.hash = "0123456789abcdef";
  manifest.parts[0].tensors = {"a", "b"};
  manifest.parts[1].per_rank = {"c"};
  write_manifest(folder / "manifest.json", manifest);
  const CheckpointManifest found = read_manifest(folder / "manifest.json");
  CHECK(manifest_text(found) == manifest_text(manifest));
  CHECK(found.history[1].test_metrics == manifest.history[1].test_metrics);
  REQUIRE(found.current.validation_metrics.size() == 1);  // numbers alone
  CHECK(std::isnan(found.current.validation_metrics[0].number()));
  CHECK(found.train_seconds == manifest.train_seconds);
  CHECK(found.samples == manifest.samples);
  CHECK(found.current.train_loss == manifest.current.train_loss);
  CHECK(std::isnan(found.current.test_loss));
  CHECK(found.history[1].evaluated);
  CHECK(found.parts == manifest.parts);
  CHECK(found.picks == manifest.picks);
  CHECK(found.metadata == manifest.metadata);
}

TEST_CASE("a manifest of another version is said, not passed over") {
  const TemporaryFolder folder;
  write_sample(folder.path(), 10);
  write_sample(folder.path(), 20);
  const fs::path path = manifest_of(checkpoint_path(folder.path(), 20));
  // As a later version would write it: whole, with a hash that fits.
  std::string text = read_file(path);
  text.replace(text.find("\"version\": 1"), 12, "\"version\": 2");
  const std::size_t end = text.rfind(",\n  \"hash\"");
  text = text.substr(0, end) + ",\n  \"hash\": \"" + Hash().add(text.substr(0, end)).text() + "\"\n}\n";
  write_file(path, text);
  int passed_over = 0;
  require_mentions(message_of<ManifestVersionError>([&] { (void)newest_in(folder.path(), passed_over); }),
                   {"manifest.json", "expected version 1", "found 2"});
}

TEST_CASE("what was written is whole, in file layout, and parts say whose their tensors are") {
  const TemporaryFolder folder;
  write_sample(folder.path(), 7);
  const CheckpointManifest manifest = verify_checkpoint(checkpoint_path(folder.path(), 7));
  CHECK(manifest.step == 7);
  REQUIRE(manifest.parts.size() == 1);
  CHECK(manifest.parts[0].tensors == std::vector<std::string>{"a.weight", "a.bias", "a.bias.momentum_buffer"});
  CHECK(manifest.parts[0].per_rank == std::vector<std::string>{"residual"});
  const Safetensors file = read_safetensors(checkpoint_path(folder.path(), 7) / manifest.parts[0].file);
  REQUIRE(file.tensors.size() == 4);
  CHECK(file.tensors[0].shape == Shape{3, 4});
  CHECK(file.tensors[0].values == std::vector<float>(12, 7.0F));
  // Nothing but the manifest and the part, and nothing beside it.
  CHECK(files_in(checkpoint_path(folder.path(), 7)).size() == 2);
  CHECK(files_in(folder.path()).size() == 1);
}

TEST_CASE("only the newest stay, and what is of later steps than the last written is set aside") {
  const TemporaryFolder folder;
  for (const std::uint64_t step : {1, 2, 30}) write_sample(folder.path(), step);
  fs::create_directory(folder / "step-5x");
  fs::create_directory(folder / "step-05");
  write_sample(folder.path(), 4, 2);
  CHECK(steps_in(folder.path()) == std::vector<std::uint64_t>{2, 4});
  write_sample(folder.path(), 4, 1);  // in the place of another
  CHECK(steps_in(folder.path()) == std::vector<std::uint64_t>{4});
  CHECK(verify_checkpoint(checkpoint_path(folder.path(), 4)).step == 4);
  CHECK(verify_checkpoint(folder / "step-30.aside").step == 30);
  CHECK(set_aside_after(folder.path(), 3).size() == 1);
  CHECK(steps_in(folder.path()).empty());
}

TEST_CASE("folders of such names that are no checkpoints are never removed") {
  const TemporaryFolder folder;
  for (const char* name : {"step-1", "step-2", "step-30"}) {
    fs::create_directory(folder / name);
    write_file(folder / name / "thesis.txt", "work");
  }
  for (const std::uint64_t step : {3, 4, 5}) write_sample(folder.path(), step, 1);
  CHECK(steps_in(folder.path()) == std::vector<std::uint64_t>{1, 2, 5});
  write_sample(folder.path(), 6, 2);
  CHECK(remove_oldest(folder.path()) == folder / "step-5");
  CHECK_FALSE(remove_oldest(folder.path()));
  write_sample(folder.path(), 2, 1);  // in the place of one
  for (const char* name : {"step-1", "step-2.aside", "step-30.aside"})
    CHECK(read_file(folder / name / "thesis.txt") == "work");
  CHECK(verify_checkpoint(folder / "step-2").step == 2);
}

TEST_CASE("all checkpoints are set aside where none is whole") {
  const TemporaryFolder folder;
  for (const std::uint64_t step : {1, 2}) write_sample(folder.path(), step);
  fs::create_directory(folder / "step-2.aside");
  CHECK(set_all_aside(folder.path()) == std::vector<fs::path>{folder / "step-1.aside", folder / "step-2.aside2"});
  CHECK(steps_in(folder.path()).empty());
}

TEST_CASE("a pipe in the place of a file is refused, and not waited for") {
  const TemporaryFolder folder;
  write_sample(folder.path(), 7);
  const fs::path checkpoint = checkpoint_path(folder.path(), 7);
  const fs::path part = checkpoint / verify_checkpoint(checkpoint).parts[0].file;
  for (const fs::path& file : {part, manifest_of(checkpoint)}) {
    fs::remove(file);
    REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
    require_mentions(message_of<InputError>([&] { (void)verify_checkpoint(checkpoint); }),
                     {file.filename().string().c_str()});
  }
}

TEST_CASE("what earlier runs left half-written goes") {
  const TemporaryFolder folder;
  write_sample(folder.path(), 1);
  fs::create_directories(folder / ".step-2.abc.partial/part-0.safetensors");
  fs::create_directories(folder / ".step-1.removed");
  write_file(folder / ".token-abc", "");
  write_file(folder / ".other", "");
  CHECK(steps_in(folder.path()) == std::vector<std::uint64_t>{1});
  remove_leftovers(folder.path());
  CHECK(files_in(folder.path()) == std::vector<fs::path>{folder / ".other", folder / "step-1"});
}

TEST_CASE("a checkpoint that was renamed is no other step's") {
  const TemporaryFolder folder;
  write_sample(folder.path(), 10);
  fs::rename(folder / "step-10", folder / "step-20");
  require_mentions(message_of<InputError>([&] { verify_checkpoint(folder / "step-20"); }), {"step-20", "10"});
}

TEST_CASE("a folder that cannot be read or is none") {
  const TemporaryFolder folder;
  CHECK(list_checkpoints(folder / "nowhere").empty());
  write_file(folder / "file", "text");
  require_mentions(message_of<InputError>([&] { (void)list_checkpoints(folder / "file"); }), {"file"});
}

TEST_CASE("every damage is found, and passed over to the checkpoint before it") {
  const TemporaryFolder folder;
  write_sample(folder.path(), 10);
  write_sample(folder.path(), 20);
  int passed_over = 0;
  REQUIRE(newest_in(folder.path(), passed_over) == 20);
  REQUIRE(passed_over == 0);
  const fs::path checkpoint = checkpoint_path(folder.path(), 20);
  const RngKey key(1, Purpose::test);
  std::uint64_t draw = 0;
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(key.below(bound, draw++)); };
  std::size_t cases = 0;
  const auto files = files_in(checkpoint);
  while (cases < 500) {
    const fs::path& file = files[cases % files.size()];
    const std::string sound = read_file(file);
    std::string damaged = sound;
    const std::size_t at = below(sound.size());
    switch (cases % 10) {
      case 8: damaged.resize(at); break;                      // cut off
      case 9: damaged.insert(at, 1 + below(3), '\0'); break;  // grown
      case 7:
        std::fill_n(damaged.begin() + static_cast<std::ptrdiff_t>(at / 64 * 64),
                    std::min<std::size_t>(64, sound.size() - at / 64 * 64), '\0');
        break;                                                                  // a lost piece
      default: damaged[at] = static_cast<char>(damaged[at] ^ (1 << below(8)));  // a flipped bit
    }
    ++cases;
    if (damaged == sound) continue;  // the piece was zero
    write_file(file, damaged);
    INFO("case " << cases << ", " << file << " at " << at);
    REQUIRE_THROWS_AS(verify_checkpoint(checkpoint), InputError);
    REQUIRE(newest_in(folder.path(), passed_over) == 10);
    REQUIRE(passed_over == 1);
    write_file(file, sound);
  }
  for (const auto& file : files) {  // a file is missing, or empty
    const std::string sound = read_file(file);
    fs::remove(file);
    REQUIRE(newest_in(folder.path(), passed_over) == 10);
    write_file(file, "");
    REQUIRE(newest_in(folder.path(), passed_over) == 10);
    write_file(file, sound);
  }
  REQUIRE(newest_in(folder.path(), passed_over) == 20);
}

TEST_CASE("every single byte of a checkpoint counts") {
  const TemporaryFolder folder;
  write_sample(folder.path(), 20);
  const fs::path checkpoint = checkpoint_path(folder.path(), 20);
  for (const auto& file : files_in(checkpoint)) {
    std::string text = read_file(file);
    for (char& byte : text) {
      byte = static_cast<char>(byte ^ 0x20);  // a letter's case, a digit, a blank
      write_file(file, text);
      REQUIRE_THROWS_AS(verify_checkpoint(checkpoint), InputError);
      byte = static_cast<char>(byte ^ 0x20);
    }
    write_file(file, text);
  }
  CHECK(verify_checkpoint(checkpoint).step == 20);
}
