// Saves on a disk that fails: at any operation, for lack of room, or by losing what was not synchronised.
#include <ronda/collectives/fabric/threads/thread_fabric.hpp>
#include <ronda/collectives/world.hpp>
#include <ronda/core/error.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/checkpointer.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/sample_checkpoint.hpp"
#include "support/catch.hpp"
#include "support/faulty_storage.hpp"
#include "support/test_clock.hpp"

using namespace ronda;
using namespace ronda::test;

namespace storage_test {
namespace {

namespace fs = std::filesystem;

/// Step of the newest whole checkpoint; 0 if there is none.
std::uint64_t newest_in(const fs::path& directory) {
  const auto place = newest_whole(directory, [](const CheckpointPlace&, const Error&) {});
  return place ? place->step : 0;
}

/// Whether the numbers of the checkpoint are those of `step`.
bool holds(const fs::path& directory, std::uint64_t step) {
  const fs::path checkpoint = checkpoint_path(directory, step);
  const auto file = read_safetensors(checkpoint / verify_checkpoint(checkpoint).parts[0].file);
  return file.tensors[0].values == std::vector<float>(12, static_cast<float>(step));
}

/// Saves `second` after step 1, with a fault at each operation in turn; then the power may fail. At most `keep`
/// checkpoints are kept.
void fail_everywhere(std::uint64_t second, std::size_t keep, bool power_fails) {
  std::size_t operation = 0;
  for (bool failed = true; failed; ++operation) {
    INFO("step " << second << ", keep " << keep << ", operation " << operation << ", power " << power_fails);
    const TemporaryFolder folder;
    FaultyStorage storage;
    REQUIRE(write_sample(folder.path(), 1, keep, storage));
    storage.fail_at(operation);
    const bool saved = write_sample(folder.path(), second, keep, storage);
    failed = storage.failed();
    if (!failed) CHECK(saved);
    if (power_fails) storage.lose_power();
    const std::uint64_t newest = newest_in(folder.path());
    CHECK((newest == second || (!saved && newest == 1)));
    CHECK(holds(folder.path(), newest));
    remove_leftovers(folder.path(), storage);
    CHECK(write_sample(folder.path(), 3, keep, storage));
    CHECK(newest_in(folder.path()) == 3);
    CHECK(holds(folder.path(), 3));
    for (const auto& entry : fs::directory_iterator(folder.path()))
      CHECK(entry.path().filename().string().starts_with("step-"));
  }
  CHECK(operation > 15);
}

}  // namespace

TEST_CASE("whichever operation of a save fails, the last checkpoint is whole, and the next save succeeds") {
  fail_everywhere(2, 10, false);
  fail_everywhere(2, 1, true);
  fail_everywhere(1, 1, true);  // the same step again, in the place of the first
}

TEST_CASE("a checkpoint that was reported as saved survives a loss of power") {
  const TemporaryFolder folder;
  FaultyStorage storage;
  for (std::uint64_t step = 1; step <= 4; ++step) {
    REQUIRE(write_sample(folder.path(), step, 2, storage));
    storage.lose_power();
    CHECK(newest_in(folder.path()) == step);
    CHECK(holds(folder.path(), step));
  }
}

TEST_CASE("a full disk keeps the last checkpoint, is reported as such, and is written to once it has room") {
  const TemporaryFolder folder;
  FaultyStorage storage;
  REQUIRE(write_sample(folder.path(), 1, 10, storage));
  SampleStates sample(2);
  Snapshot snapshot(sample.states());
  snapshot.take();
  CheckpointWriter writer(folder.path(), 10, "token", 0, {}, nullptr, storage);
  storage.set_full(true);
  writer.write_part(snapshot, 2);
  writer.work().step();
  CHECK(writer.part() == CheckpointWriter::Outcome::failed);
  CHECK(writer.part_lacks_room());
  CHECK(newest_in(folder.path()) == 1);
  storage.set_full(false);
  CHECK(write_sample(folder.path(), 2, 10, storage));
  CHECK(newest_in(folder.path()) == 2);
}

TEST_CASE("a folder that cannot be listed or locked is an error, and the next call succeeds") {
  const TemporaryFolder folder;
  FaultyStorage storage;
  REQUIRE(write_sample(folder.path(), 1, 10, storage));
  storage.fail_at(0);
  CHECK_THROWS_AS(list_checkpoints(folder.path(), storage), InputError);
  CHECK(list_checkpoints(folder.path(), storage).size() == 1);
  const auto lock = [&] {
    FolderLock(
        folder.path(), 0, [](const std::string&) {}, steady_clock(), storage);
  };
  storage.fail_at(0);
  CHECK_THROWS_AS(lock(), InputError);
  CHECK_NOTHROW(lock());
}

// ---- when a save begins ---------------------------------------------------------------------------------------------

/// A training of one rank, on a clock and a disk of its own, whose saves are written when the test says so.
struct Training {
  explicit Training(double seconds)
      : checkpointer(world.communicator(),
                     {.directory = folder.path(), .every = {.seconds = seconds}, .keep = 2, .thread = false}, {}, sink,
                     storage) {
    checkpointer.bind(sample.states());
  }
  /// True if a save began after this step.
  bool step() {
    ++steps;
    if (!checkpointer.after_step(checkpointer.flags(), steps)) return false;
    checkpointer.save(sample_manifest(steps));
    return true;
  }
  /// The checkpoints are known to be written a step after they were.
  void write() {
    while (checkpointer.step()) {
    }
  }

  TemporaryFolder folder;
  FaultyStorage storage;
  TestClock clock;
  std::shared_ptr<ThreadNetwork> network = std::make_shared<ThreadNetwork>(1);
  World world{std::make_unique<ThreadFabric>(network, 0, clock)};
  EventSink sink;
  SampleStates sample{1};
  std::uint64_t steps = 0;
  Checkpointer checkpointer;
};

TEST_CASE("a save begins when its time has come, and not before") {
  Training training(30);
  training.clock.advance(29.9375);
  CHECK_FALSE(training.step());
  training.clock.advance(0.0625);
  CHECK(training.step());
  CHECK_FALSE(training.step());  // it is being written
  CHECK(list_checkpoints(training.folder.path()).empty());
  training.write();  // the part
  CHECK_FALSE(training.step());
  training.write();  // the manifest
  CHECK(newest_in(training.folder.path()) == 2);
  training.clock.advance(29.9375);
  CHECK_FALSE(training.step());
  training.clock.advance(0.0625);
  CHECK(training.step());
  CHECK(training.checkpointer.finish());
  CHECK(newest_in(training.folder.path()) == training.steps);
  CHECK(training.checkpointer.written() == 2);
  CHECK(training.checkpointer.slowest_seconds() < 30);
}

TEST_CASE("a save that is due while another is written begins when that is over") {
  Training training(30);
  training.clock.advance(30);
  CHECK(training.step());
  training.clock.advance(30);
  CHECK_FALSE(training.step());
  training.write();
  CHECK(training.step());
  CHECK(training.checkpointer.finish());
}

}  // namespace storage_test
