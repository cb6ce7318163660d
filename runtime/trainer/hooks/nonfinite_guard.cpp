#include <ronda/collectives/phase.hpp>
#include <ronda/core/error.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/restore.hpp>
#include <ronda/runtime/io/summary.hpp>
#include <ronda/runtime/trainer/hooks/nonfinite_guard.hpp>

namespace ronda {
namespace {

/// Then no batch is to blame, but the parameters.
constexpr std::uint64_t most_in_a_row = 10;

}  // namespace

void NonfiniteGuard::after_step(TrainingRun& run, const StepReport& report) {
  const StepResult& step = run.last_step();
  if (step.overflow) {
    ++overflow_steps_;
    run.sink().on_detail("step " + std::to_string(report.step) +
                         " is not applied: a gradient is beyond float16; the loss scale is " +
                         std::to_string(step.loss_scale) + " from here on");
  }
  if (step.nonfinite || step.spoiled)
    react(run);
  else if (step.weight > 0)  // it tells something
    in_a_row_ = 0;
}

void NonfiniteGuard::react(TrainingRun& run) {
  ++nonfinite_steps_;
  ++in_a_row_;
  const std::string why =
      "step " + std::to_string(run.step()) + " is not finite: " + run.strategy().explain_nonfinite(run.last_batch());
  const OnNonfinite choice = run.options().on_nonfinite.value_or(OnNonfinite::stop);
  if (choice == OnNonfinite::stop)
    throw as_agreed(Error(why + "; a smaller .learning_rate or .clip_norm may help, .on_nonfinite = skip goes on"));
  if (in_a_row_ >= most_in_a_row)
    throw as_agreed(Error(why + "; the " + std::to_string(most_in_a_row) +
                          "th step in a row: no batch is to blame, but the parameters"));
  if (choice == OnNonfinite::rollback) return roll_back(run, why);
  if (run.last_step().spoiled) throw as_agreed(Error(why + "; the update is done, and nothing is left to go on with"));
  run.sink().on_warning(why + "; it is skipped");
}

/// Parameters and optimizer become the last checkpoint's; the data goes on, so that the same batch is not met again.
void NonfiniteGuard::roll_back(TrainingRun& run, const std::string& why) {
  const auto& folder = run.options().checkpoint_dir;
  const Communicator& communicator = run.world().communicator();
  saving_->finish();
  std::string place;
  agree(communicator, [&] {
    if (communicator.rank() != 0) return;
    const Phase phase(communicator, Activity::reading, reading_limit(folder));
    const auto newest = newest_whole(folder, [&](const CheckpointPlace&, const Error& error) {
      run.sink().on_warning(std::string("passed over: ") + error.what());
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
  run.sink().on_warning(why + "; parameters and optimizer are those after step " + std::to_string(manifest.step) +
                        " again");
}

void NonfiniteGuard::summarize(Summary& summary) const {
  summary.guard.nonfinite_steps = nonfinite_steps_;
  summary.guard.overflow_steps = overflow_steps_;
  summary.guard.rollbacks = rollbacks_;
}

}  // namespace ronda
