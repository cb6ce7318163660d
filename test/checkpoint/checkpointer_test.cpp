// Ranks save together, as a training would, and read it back on as many ranks or on others.
#include <ronda/core/error.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/checkpointer.hpp>
#include <ronda/runtime/checkpoint/restore.hpp>

#include "checkpoint/sample_checkpoint.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;
namespace fs = std::filesystem;

namespace {

struct Warnings final : EventSink {
  void on_warning(std::string_view text) override { texts.emplace_back(text); }
  std::vector<std::string> texts;
};

/// A training whose states become the number of its step.
struct Training {
  Training(Communicator c, const CheckpointOptions& options, const std::vector<Fault>& faults = {})
      : communicator(std::move(c)),
        sample(0),
        checkpointer(communicator, options, Faults(faults, communicator.rank()), sink) {
    states = sample.states();
    states.push_back({"runs", Tensor(std::span(&runs, 1))});
    checkpointer.bind(states);
  }
  void step() {
    ++steps;
    runs = -static_cast<std::int64_t>(steps);
    for (float& number : sample.numbers) number = static_cast<float>(steps);
    sample.numbers[18] = static_cast<float>(steps + 100 * static_cast<std::uint64_t>(communicator.rank()));  // its own
    StepFlags flags = checkpointer.flags();
    communicator.allreduce(Tensor(std::span(&flags.stop, sizeof flags / sizeof(double))));
    if (checkpointer.after_step(flags, steps)) checkpointer.save(sample_manifest(steps));
  }

  /// Rank 0 says when.
  template <class Enough>
  void run_until(Enough enough) {
    for (std::int32_t over = 0; over == 0;) {
      step();
      over = enough() ? 1 : 0;
      communicator.broadcast(Tensor(std::span(&over, 1)));
    }
  }

  Communicator communicator;
  Warnings sink;
  SampleStates sample;
  std::vector<State> states;
  std::uint64_t steps = 0;
  std::int64_t runs = 0;
  Checkpointer checkpointer;
};

/// One folder for all ranks.
struct SharedFolder {
  SharedFolder() : path(world().communicator().broadcast_text(own.path().string())) {}
  ~SharedFolder() {
    Communicator all = world().communicator();
    all.barrier();
  }
  TemporaryFolder own;
  fs::path path;
};

}  // namespace

TEST_CASE("what all ranks have saved is whole and comes back") {
  const SharedFolder folder;
  Communicator all = world().communicator();
  std::uint64_t newest = 0;
  {
    Training training(all, {folder.path, {.steps = 10, .seconds = 0}, 2});
    training.run_until([&] { return training.checkpointer.written() >= 3; });
    CHECK(training.checkpointer.finish());
    CHECK(training.sink.texts.empty());
    all.barrier();
    const auto places = list_checkpoints(folder.path);
    REQUIRE(places.size() == 2);
    for (const auto& place : places) {
      const CheckpointManifest manifest = verify_checkpoint(place.path);
      CHECK(manifest.ranks == all.size());
      CHECK(manifest.step == place.step);
    }
    newest = places.back().step;
  }
  const CheckpointManifest manifest = read_manifest(manifest_of(checkpoint_path(folder.path, newest)));
  SampleStates fresh(-1);
  auto states = fresh.states();
  std::int64_t runs = 0;
  states.push_back({"runs", Tensor(std::span(&runs, 1))});
  CHECK(restore(checkpoint_path(folder.path, newest), manifest, states, false, all).empty());
  for (std::size_t i = 0; i < 18; ++i) CHECK(fresh.numbers[i] == static_cast<float>(newest));
  CHECK(runs == -static_cast<std::int64_t>(newest));
  CHECK(fresh.numbers[18] == static_cast<float>(newest + 100 * static_cast<std::uint64_t>(all.rank())));

  // On one rank less: what was each rank's own stays as it was.
  Communicator fewer = all.split(all.rank() == 0 && all.size() > 1 ? 1 : 0, all.rank());
  if (fewer.size() == all.size()) return;
  SampleStates other(-1);
  CHECK(restore(checkpoint_path(folder.path, newest), manifest, other.states(), false, fewer).size() == 1);
  CHECK(other.numbers[0] == static_cast<float>(newest));
  CHECK(other.numbers[18] == -1);
}

TEST_CASE("what is averaged comes back rank by rank, and on another number of ranks as the mean of all") {
  const SharedFolder folder;
  Communicator all = world().communicator();
  std::vector<float> mean(3);
  const auto set = [&](float value) { mean.assign(3, value); };
  const std::vector<State> states{{"mean", Tensor(std::span(mean))}};
  const auto own = static_cast<float>(2 + all.rank());
  set(own);
  Warnings sink;
  Checkpointer checkpointer(all, {folder.path, {}, 1}, Faults({}, all.rank()), sink);
  checkpointer.bind(states);
  checkpointer.save_last(sample_manifest(7));
  CHECK(checkpointer.finish());
  all.barrier();
  const fs::path saved = checkpoint_path(folder.path, 7);
  const CheckpointManifest manifest = read_manifest(manifest_of(saved));
  set(-1);
  CHECK(restore(saved, manifest, states, false, all).empty());
  CHECK(mean == std::vector<float>(3, own));
  set(-1);
  CHECK(restore(saved, manifest, states, false, all.split(all.rank(), 0)).empty());
  CHECK(mean == std::vector<float>(3, static_cast<float>(all.size() + 3) / 2));
}

TEST_CASE("the last save is there when all is over, whatever is under way") {
  const SharedFolder folder;
  Training training(world().communicator(), {folder.path, {.steps = 1, .seconds = 0}, 3});
  for (int i = 0; i < 5; ++i) training.step();
  training.checkpointer.save_last(sample_manifest(training.steps));
  CHECK(training.checkpointer.finish());
  training.communicator.barrier();
  CHECK(verify_checkpoint(checkpoint_path(folder.path, 5)).step == 5);
}

TEST_CASE("what is due is saved at once where it has to be on time, whatever is under way") {
  const SharedFolder folder;
  Training training(world().communicator(),
                    {.directory = folder.path, .every = {.steps = 3, .seconds = 0}, .keep = 100, .on_time = true});
  for (int i = 0; i < 60; ++i) training.step();
  CHECK(training.checkpointer.finish());
  training.communicator.barrier();
  for (std::uint64_t step = 3; step <= 60; step += 3)
    CHECK(verify_checkpoint(checkpoint_path(folder.path, step)).step == step);
}

TEST_CASE("seconds count as steps do") {
  const SharedFolder folder;
  Training training(world().communicator(), {folder.path, {.steps = 0, .seconds = 0.001}, 3});
  training.run_until([&] { return training.checkpointer.written() >= 2; });
  CHECK(training.checkpointer.finish());
}

TEST_CASE("a part that cannot be written is a warning, and the next is tried") {
  const SharedFolder folder;
  Communicator all = world().communicator();
  const int last = all.size() - 1;
  Training training(all, {folder.path, {.steps = 0, .seconds = 0}, 3}, {{FaultKind::fail_write, 2, last}});
  for (int i = 1; i <= 3; ++i) {
    training.step();
    training.checkpointer.save(sample_manifest(training.steps));
    CHECK(training.checkpointer.finish() == (i != 2));
  }
  if (all.rank() == 0) {
    REQUIRE(training.sink.texts.size() == 1);
    CHECK(training.sink.texts[0].find("step 2 was not written: rank " + std::to_string(last)) != std::string::npos);
    CHECK(training.sink.texts[0].find("No space left") != std::string::npos);
  }
  all.barrier();
  REQUIRE(list_checkpoints(folder.path).size() == 2);
  CHECK(verify_checkpoint(checkpoint_path(folder.path, 3)).step == 3);
}

TEST_CASE("a folder that the ranks do not share is refused on all") {
  const SharedFolder folder;
  Communicator all = world().communicator();
  EventSink silence;
  const fs::path mine = folder.path / (all.rank() == 0 ? "a" : "b");
  const auto make = [&] { Checkpointer(all, {mine, {}, 1}, {}, silence); };
  if (all.size() == 1)
    CHECK_NOTHROW(make());
  else
    CHECK_THROWS_AS(make(), Error);
  write_file(folder.own / "file", "text");
  CHECK_THROWS_AS(Checkpointer(all, {folder.path / "file", {}, 1}, {}, silence), Error);
}

TEST_CASE("what does not match is refused, or left where that is meant") {
  const SharedFolder folder;
  Communicator all = world().communicator();
  Training training(all, {folder.path, {}, 1});
  training.step();
  training.checkpointer.save(sample_manifest(1));
  REQUIRE(training.checkpointer.finish());
  all.barrier();
  const fs::path place = checkpoint_path(folder.path, 1);
  const CheckpointManifest manifest = read_manifest(manifest_of(place));
  SampleStates fresh(-1);
  auto states = fresh.states();
  states[2].name = "a.bias.exp_avg";
  CHECK_THROWS_AS(restore(place, manifest, states, false, all), Error);
  const auto notes = restore(place, manifest, states, true, all);
  CHECK(notes.size() == (all.rank() == 0 ? 2U : 0U));
  CHECK(fresh.numbers[0] == 1);
  CHECK(fresh.numbers[15] == -1);
  states = fresh.states();
  states[0].tensor = Tensor({Shape{4, 3}, DType::float32, {}}, fresh.numbers.data());
  CHECK_THROWS_AS(restore(place, manifest, states, true, all), Error);
}
