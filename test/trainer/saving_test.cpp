// How trainings that are saved begin and end: one run a folder, no end without its checkpoint in silence.
#include <algorithm>
#include <fstream>

#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/trainer/trainer.hpp>

#include "support/message.hpp"
#include "support/toy_data.hpp"
#include "trainer/saved_training.hpp"

using namespace ronda;
using namespace ronda::test;

namespace saving_test {
namespace fs = std::filesystem;

namespace {

struct Training {
  explicit Training(TrainingOptions options, EventSink* sink = nullptr)
      : trainer(world(), model, loss, small(std::move(options)), sink) {}
  Evaluation fit() { return trainer.fit(data, data); }

  MemoryDataset data = toy_images(90, {9, 7, 1}, 4);
  Sequential model{Flatten(), Dense(9), ReLU(), Dense(4)};
  SoftmaxCrossEntropy loss;
  Trainer trainer;
};

/// What a training says.
class Notes final : public EventSink {
 public:
  void on_note(std::string_view note) override { text.append(note).append("\n"); }
  void on_warning(std::string_view warning) override { warnings.emplace_back(warning); }
  std::string text;
  std::vector<std::string> warnings;
};

std::vector<std::uint64_t> steps_in(const fs::path& directory) {
  std::vector<std::uint64_t> steps;
  for (const auto& place : list_checkpoints(directory)) steps.push_back(place.step);
  return steps;
}

bool first() { return world().rank() == 0; }
void together() {
  Communicator all = world().communicator();
  all.barrier();
}

/// The manifest becomes what `change` makes of it, with a hash that fits.
void reseal(const fs::path& manifest, const std::string& from, const std::string& to) {
  if (first()) {
    std::string text = read_file(manifest);
    text.replace(text.find(from), from.size(), to);
    text.resize(text.rfind(",\n  \"hash\""));
    write_file(manifest, text + ",\n  \"hash\": \"" + Hash().add(text).text() + "\"\n}\n");
  }
  together();
}

}  // namespace

TEST_CASE("a training whose last checkpoint could not be written does not end as if it had") {
  const SharedFolder folder;
  TrainingOptions options = saving_in(folder);
  options.faults = {parse_fault("fail-write@1:0")};
  const SharedFolder results;
  options.summary_json = results.path / "summary.json";
  require_mentions(message_of<ResourceError>([&] { Training(options).fit(); }),
                   {"last checkpoint could not be written", folder.path.string()});
  if (first()) CHECK(fs::exists(options.summary_json));  // what was trained is not lost for that
  CHECK(steps_in(folder.path).empty());

  TrainingOptions twice = saving_in(folder, steps / 2);  // one was written, the last was not
  twice.faults = {parse_fault("fail-write@" + std::to_string(steps) + ":0")};
  CHECK_THROWS_AS(Training(twice).fit(), ResourceError);
  CHECK(steps_in(folder.path) == std::vector<std::uint64_t>{steps / 2});
}

TEST_CASE("a checkpoint that fails on the way does not count where the last is written") {
  const SharedFolder folder;
  TrainingOptions options = saving_in(folder, steps / 2);
  options.faults = {parse_fault("fail-write@1:0")};
  CHECK_NOTHROW(Training(options).fit());
  CHECK(steps_in(folder.path) == std::vector<std::uint64_t>{steps});
}

TEST_CASE("a folder that somebody removes on the way is made again") {
  const SharedFolder folder;
  TrainingOptions options = saving_in(folder, 2);
  options.checkpoint_dir = folder.path / "run/checkpoints";
  Training training(options);
  std::uint64_t step = 0;
  Callbacks hooks;
  hooks.step = [&](const StepReport&) {
    if (++step == 5 && first()) fs::rename(folder.path / "run", folder.path / "gone");
  };
  training.trainer.add(std::move(hooks));
  CHECK_NOTHROW(training.fit());
  together();
  const auto there = steps_in(options.checkpoint_dir);
  REQUIRE_FALSE(there.empty());
  CHECK(there.back() == steps);
  CHECK(verify_checkpoint(checkpoint_path(options.checkpoint_dir, steps)).step == steps);
}

TEST_CASE("a training whose checkpoints are all damaged begins anew only where that is allowed") {
  const SharedFolder folder;
  Training(saving_in(folder, 4)).fit();
  if (first())
    for (const auto& place : list_checkpoints(folder.path)) write_file(place.path / "part-0.safetensors", "damaged");
  together();
  TrainingOptions options = saving_in(folder);
  options.resume = true;
  for (const bool exact : {false, true}) {
    options.exact = exact;
    require_mentions(message_of<InputError>([&] { Training(options).fit(); }),
                     {"no checkpoint in " + folder.path.string() + " is whole", ".resume_or_restart"});
  }
  options.resume = options.exact = false;
  options.resume_or_restart = true;
  Notes notes;
  Training anew(options, &notes);
  anew.fit();
  CHECK(anew.trainer.statistics().steps() == steps);
  if (first()) CHECK(notes.warnings.back().find("starting anew") != std::string::npos);
  if (first())
    CHECK(std::ranges::any_of(notes.warnings, [&](const std::string& warning) {
      return warning.ends_with("is set aside as " + checkpoint_path(folder.path, 4).string() + ".aside");
    }));
  CHECK(fs::exists(checkpoint_path(folder.path, 4).string() + ".aside/part-0.safetensors"));
  Training resumed(options);
  resumed.fit();
  CHECK(resumed.trainer.statistics().steps() == 0);  // resumed from a whole checkpoint at the end
}

TEST_CASE("a rollback goes to the last step that was due: each of them is saved") {
  const SharedFolder folder;
  TrainingOptions options = saving_in(folder, 1);
  options.keep = 100;
  options.on_nonfinite = OnNonfinite::rollback;
  Training(options).fit();
  CHECK(steps_in(folder.path).size() == steps);
}

TEST_CASE("a record that cannot be written is one warning, and the training goes on") {
  TrainingOptions options;
  options.metrics = "/dev/full";
  Notes notes;
  Training training(options, &notes);
  training.fit();
  CHECK(training.trainer.statistics().steps() == steps);
  if (!first()) return;
  REQUIRE(notes.warnings.size() == 1);
  require_mentions(notes.warnings[0], {"/dev/full", "No space left", "goes on"});
}

TEST_CASE("a training that is not saved says that it cannot end early, and goes on") {
  TrainingOptions options;
  options.leave = [] { return true; };
  Notes notes;
  Training training(options, &notes);
  training.fit();
  CHECK_FALSE(training.trainer.left());
  CHECK(training.trainer.statistics().steps() == steps);
  if (!first()) return;
  REQUIRE(notes.warnings.size() == 1);
  require_mentions(notes.warnings[0], {"nothing of it is saved without .checkpoint_dir", "continues"});
}

TEST_CASE("a wish to end that comes before the first step ends the run before it plans") {
  const SharedFolder folder;
  TrainingOptions options = saving_in(folder);
  const bool told = world().rank() + 1 == world().size();
  options.leave = [told] { return told; };
  Training training(options);
  training.fit();
  CHECK(training.trainer.left());
  CHECK(training.trainer.statistics().steps() == 0);
  CHECK(steps_in(folder.path).empty());
}

TEST_CASE("more micro-batches than a rank has samples are refused") {
  TrainingOptions options;
  const auto most = static_cast<std::size_t>((25 + world().size() - 1) / world().size());
  options.accumulate = most + 1;
  require_mentions(message_of<InputError>([&] { Training(options).fit(); }),
                   {".accumulate = " + std::to_string(most + 1), std::to_string(most) + " samples"});
  options.accumulate = most;
  options.epochs = 1;
  CHECK_NOTHROW(Training(options).fit());
}

TEST_CASE("a checkpoint without what a resumption needs, or with other than it needs, is refused by name") {
  const SharedFolder folder;
  run_until(2, saving_in(folder), [](TrainingOptions options) {
    auto training = std::make_unique<Training>(std::move(options));
    training->fit();
    return training;
  });
  const fs::path manifest = manifest_of(checkpoint_path(folder.path, 2));
  const std::string sound = read_file(manifest), batch = "\"global-batch-size\": \"25\"";
  for (const std::string& other :
       {std::string("\"no-batch-size\": \"25\""), std::string("\"global-batch-size\": \"\""),
        std::string("\"global-batch-size\": \"0\""), std::string("\"global-batch-size\": \"99999999999999999999\"")}) {
    INFO(other);
    reseal(manifest, batch, other);
    TrainingOptions options = saving_in(folder);
    options.resume = true;
    options.allow_changes = {"global-batch-size"};
    require_mentions(message_of<InputError>([&] { Training(options).fit(); }), {"manifest.json", "global-batch-size"});
    together();
    if (first()) write_file(manifest, sound);
    together();
  }
  reseal(manifest, "\"step_in_epoch\": 2", "\"step_in_epoch\": 18446744073709551615");
  TrainingOptions options = saving_in(folder);
  options.resume = true;
  CHECK_THROWS_AS(Training(options).fit(), InputError);
}

TEST_CASE(
    "a checkpoint of the Ronda that hashed all data is gone on from, with a note; its shapes are still compared") {
  const SharedFolder folder;
  run_until(2, saving_in(folder), [](TrainingOptions options) {
    auto training = std::make_unique<Training>(std::move(options));
    training->fit();
    return training;
  });
  const fs::path manifest = manifest_of(checkpoint_path(folder.path, 2));
  const std::string shapes = "\"90 samples, input (9, 7, 1), target ()", sampled = ", sampled contents ";
  TrainingOptions options = saving_in(folder);
  options.resume = true;
  const auto refusal_of = [&](const std::string& from, const std::string& to) {
    const std::string sound = read_file(manifest);
    together();
    reseal(manifest, from, to);
    const std::string message = message_of<InputError>([&] { Training(options).fit(); });
    together();
    if (first()) write_file(manifest, sound);
    together();
    return message;
  };
  require_mentions(refusal_of(sampled, sampled + "1"), {"data is '90 samples", "sampled contents 1", ".allow_changes"});
  reseal(manifest, sampled, ", contents 1");
  require_mentions(refusal_of(shapes, "\"91 samples, input (9, 7, 1), target ()"),
                   {"data is '90 samples", "'91 samples"});
  Notes notes;
  Training training(options, &notes);
  CHECK_NOTHROW(training.fit());
  CHECK(training.trainer.statistics().steps() == steps - 2);
  if (first()) CHECK(notes.text.find("contents are not compared") != std::string::npos);
  options.epochs = 3;
  options.resume_from = checkpoint_path(folder.path, steps);  // written by this version: nothing to be said
  options.resume = false;
  Notes none;
  CHECK_NOTHROW(Training(options, &none).fit());
  CHECK(none.text.find("contents are not compared") == std::string::npos);
}

}  // namespace saving_test
