#include <ronda/core/text.hpp>
#include <ronda/runtime/trainer/hooks/pruning.hpp>

#include <cmath>

namespace ronda {

void Pruning::on_start(TrainingRun& run) {
  const TrainingSetup& setup = run.setup();
  const auto step_of = [&](double share) {
    return setup.first_step +
           static_cast<std::uint64_t>(std::llround(share * static_cast<double>(setup.total_steps - setup.first_step)));
  };
  const TrainingOptions& options = run.options();
  schedule_ = PruningSchedule(options.prune, step_of(options.prune_begin), step_of(options.prune_end));
  prune(run);  // a training that goes on has these zeros, and is to keep them
}

void Pruning::after_step(TrainingRun& run, const StepReport& report) {
  if (schedule_.prunes_after(report.step)) prune(run);
  if (run.states_were_set() != states_were_set_ && run.settled()) prune(run);  // by a checkpoint with fewer zeros
}

void Pruning::after_epoch(TrainingRun& run, const EpochReport&) {
  if (run.states_were_set() != states_were_set_) prune(run);
  if (schedule_.share_after(run.step()) == 0) return;
  const auto [weights, zeros] = run.strategy().state().zeros();
  TextWriter text;
  text.precision(4);
  text << 100 * static_cast<double>(zeros) / static_cast<double>(weights) << " % of "
       << counted(static_cast<std::int64_t>(weights), "weight") << " are zero";
  run.sink().on_note(text.str());
}

/// Other hooks are told, so that no repair does a step from before a pruning once more.
void Pruning::prune(TrainingRun& run) {
  const double share = schedule_.share_after(run.step());
  if (share > 0) {
    run.strategy().state().prune(share);
    run.note_states_were_set();
  }
  states_were_set_ = run.states_were_set();
}

}  // namespace ronda
