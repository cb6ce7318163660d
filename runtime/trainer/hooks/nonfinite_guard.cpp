#include <ronda/collectives/phase.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/floats.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/restore.hpp>
#include <ronda/runtime/io/safetensors.hpp>
#include <ronda/runtime/io/summary.hpp>
#include <ronda/runtime/trainer/hooks/nonfinite_guard.hpp>

#include <algorithm>
#include <cmath>

namespace ronda {
namespace {

/// Then no batch is to blame, but the parameters.
constexpr std::uint64_t most_in_a_row = 10;

/// Why a step is not finite, and a possible remedy.
struct Cause {
  Message text, remedy;
  bool given = true;  ///< the number is in the data or the initial parameters
};

/// The first tensor of a safetensors file with a number that is not finite; empty if all are finite.
std::string nonfinite_tensor(const std::filesystem::path& path) {
  SafetensorsFile file(path);
  for (const auto& entry : file.entries())
    if (entry.dtype == DType::float32 && !all_finite(1, file.read(entry))) return entry.name;
  return {};
}

/// Looks in the samples of the step first, then in the initial parameters, then at the results of the step. Collective.
Cause cause_of(TrainingRun& run) {
  const Communicator& communicator = run.world().communicator();
  const auto samples = communicator.gather_texts(run.nonfinite_sample());
  const auto found = std::ranges::find_if_not(samples, &std::string::empty);
  if (found != samples.end())
    return {*found + " of the training data",
            "mend that sample or leave it out; " + setting("on_nonfinite", "skip") + " skips such steps"};
  const std::filesystem::path& init = run.options().init;
  const bool from_file = !init.empty() && run.progress().resumed_step == 0;
  std::string tensor;
  if (from_file)
    agree(communicator, [&] {
      if (communicator.rank() == 0) tensor = nonfinite_tensor(init);
    });
  tensor = communicator.broadcast_text(tensor);
  if (!tensor.empty())
    return {tensor + " in " + setting("init", init.string()) + " has numbers that are not finite",
            "begin with other parameters"};
  return {run.strategy().explain_nonfinite(run.last_batch()),
          "a smaller " + setting("learning_rate") + " or " + setting("clip_norm") + " may help, " +
              setting("on_nonfinite", "skip") + " goes on",
          false};
}

}  // namespace

void NonfiniteGuard::after_step(TrainingRun& run, const StepReport& report) {
  const StepResult& step = run.last_step();
  if (step.overflow) {
    ++overflow_steps_;
    run.sink().on_detail("step " + std::to_string(report.step) +
                         " is not applied: a gradient is beyond float16; the loss scale is " +
                         shortest(step.loss_scale) + " from here on");
  }
  if (!std::isfinite(step.weight) || step.weight < 0)
    throw as_agreed(InputError("the loss counted the total weight " + shortest(step.weight) + " in step " +
                               std::to_string(report.step) +
                               "; it adds the weights of the samples that count, which are not negative"));
  if (step.nonfinite || step.spoiled)
    react(run);
  else if (step.weight > 0)  // it tells something
    in_a_row_ = 0;
}

void NonfiniteGuard::react(TrainingRun& run) {
  ++nonfinite_steps_;
  ++in_a_row_;
  const Cause cause = cause_of(run);
  const Message why = "step " + std::to_string(run.step()) + " is not finite: " + cause.text;
  const OnNonfinite choice = run.options().on_nonfinite.value_or(OnNonfinite::stop);
  if (choice == OnNonfinite::stop) throw as_agreed(Error(why + "; " + cause.remedy));
  if (in_a_row_ >= most_in_a_row)
    throw as_agreed(Error(why + "; the " + std::to_string(most_in_a_row) + "th step in a row" +
                          (cause.given ? "; " + cause.remedy : ": no batch is to blame, but the parameters")));
  if (choice == OnNonfinite::rollback) return roll_back(run, why);
  if (run.last_step().spoiled) throw as_agreed(Error(why + "; the update is done, and nothing is left to go on with"));
  run.sink().on_message(Severity::warning, why + "; it is skipped");
}

/// Parameters and optimizer become the last checkpoint's; the data continues, so that the same batch does not come
/// again.
void NonfiniteGuard::roll_back(TrainingRun& run, const Message& why) {
  const auto& folder = run.options().checkpoint_dir;
  const Communicator& communicator = run.world().communicator();
  saving_->finish();
  std::string place;
  agree(communicator, [&] {
    if (communicator.rank() != 0) return;
    const Phase phase(communicator, Activity::reading, reading_limit(folder));
    const auto newest = newest_whole(folder, [&](const CheckpointPlace&, const Error& error) {
      run.sink().on_message(Severity::warning, "passed over: " + error.message());
    });
    if (newest) place = newest->path.string();
  });
  place = communicator.broadcast_text(place);
  if (place.empty()) throw as_agreed(Error(why + "; there is no checkpoint yet to go back to"));
  CheckpointManifest manifest;
  agree(communicator, [&] { manifest = read_manifest(manifest_of(place)); });
  run.strategy().state().gather_state();                         // a split model refuses to be set otherwise
  run.strategy().state().set_updates(run.strategy().updates());  // what is under way writes into no state any more
  StateList states;
  run.strategy().visit(states);
  static_cast<void>(restore(place, manifest, states.states(), false, communicator, run.strategy().device(),
                            run.strategy().state().divided().pieces()));
  run.strategy().state().set_updates(manifest.updates);
  run.note_states_were_set();
  ++rollbacks_;
  run.sink().on_message(Severity::warning, why + "; parameters and optimizer are those after step " +
                                               std::to_string(manifest.step) + " again");
}

void NonfiniteGuard::summarize(Summary& summary) const {
  summary.guard.nonfinite_steps = nonfinite_steps_;
  summary.guard.overflow_steps = overflow_steps_;
  summary.guard.rollbacks = rollbacks_;
}

}  // namespace ronda
