#include <ronda/core/error.hpp>
#include <ronda/core/state.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/io/summary.hpp>
#include <ronda/runtime/trainer/hooks/saving.hpp>
#include <ronda/runtime/trainer/version.hpp>

#include <algorithm>

namespace ronda {
namespace {

/// Rank 0's counts.
CheckpointManifest manifest_of_run(TrainingRun& run) {
  CheckpointManifest m;
  m.step = run.step();
  run.prepare_save(m);
  if (run.world().rank() != 0) return m;
  const TrainingProgress& progress = run.progress();
  m.application = run.options().application;
  m.ronda = version();
  m.epoch = progress.current.epoch;
  m.step_in_epoch = progress.batches.taken();
  m.skipped_batches = progress.batches.skipped();
  m.updates = run.strategy().updates();
  m.samples = run.samples();
  m.train_seconds = run.train_seconds();
  m.last_loss = progress.last_loss;
  m.options = run.setup().options_that_matter;
  m.environment = run.setup().environment;
  m.picks = run.strategy().picks();
  m.plan = run.strategy().plan_lines();
  m.current = progress.current;
  m.weight = progress.weight;
  m.history = progress.history;
  m.metric = run.metric();
  m.metadata = run.options().metadata;
  return m;
}

}  // namespace

/// Before anything is read there: no other run may change the folder meanwhile.
Saving::Saving(const Communicator& communicator, const TrainingOptions& options, EventSink& sink)
    : directory_(options.checkpoint_dir),
      communicator_(communicator),
      sink_(sink),
      leave_(options.time_limit, options.leave, communicator_.clock()),
      checkpointer_(communicator,
                    {.directory = options.checkpoint_dir,
                     .every = options.checkpoint_every,
                     .keep = options.keep,
                     // A rollback returns to a save.
                     .on_time = options.strategy.saves_change_steps() || options.on_nonfinite == OnNonfinite::rollback},
                    Faults(options.faults, communicator.rank()), sink) {
  if (!leave_.note().empty()) sink_.on_note(leave_.note());
}

/// The reason of the lowest rank that has one. Collective.
Message Saving::reason_of_any_rank(const Message& mine) const {
  const auto reasons = communicator_.gather_texts(mine.packed());
  const auto first = std::ranges::find_if(reasons, [](const auto& reason) { return !reason.empty(); });
  return first == reasons.end() ? Message() : Message::unpacked(*first);
}

bool Saving::leaves_at_once() {
  const Message reason = reason_of_any_rank(leave_.reason(0));
  if (reason.empty()) return false;
  sink_.on_message(Severity::note, "ended before the first step of this run, because " + reason +
                                       "; nothing is lost, " + setting("resume") + " goes on from there");
  return true;
}

void Saving::on_start(TrainingRun& run) {
  StateList states;
  run.strategy().visit(states);
  agree(communicator_, [&] {
    for (const State& state : run.strategy().state().divided().whole()) states.visit(state);
  });
  checkpointer_.bind(states.states(), run.strategy().device());
}

void Saving::before_step(TrainingRun& run, StepFlags& flags) {
  const StepFlags mine = checkpointer_.flags();
  flags.save = std::max(flags.save, mine.save);  // another hook may ask for it too
  flags.written = mine.written;
  flags.unwritten = mine.unwritten;
  reason_ = leave_.reason(checkpointer_.slowest_seconds() + run.slowest_test());
  flags.leave = reason_.empty() ? 0 : 1;
}

bool Saving::settles_after(std::uint64_t step) const {
  const std::uint64_t every = checkpointer_.options().every.steps;
  return due_ || (every > 0 && step % every == 0);
}

void Saving::after_step(TrainingRun& run, const StepReport& report) {
  due_ = checkpointer_.after_step(run.last_step().flags, report.step);
  if (!run.settled()) return;  // what is saved is the training after the last step that was begun
  if (run.ending())
    save_last(run);
  else if (due_)
    checkpointer_.save(manifest_of_run(run));
  due_ = false;
}

void Saving::save_last(TrainingRun& run) {
  checkpointer_.save_last(manifest_of_run(run));
  saved_last_ = true;
}

/// A training that goes on from a checkpoint of its end, in another folder, has none in this one.
bool Saving::is_saved_elsewhere(TrainingRun& run) const {
  if (run.left() || run.progress().resumed_from.empty()) return false;
  std::error_code ignored;
  const bool elsewhere = communicator_.rank() == 0 &&
                         !std::filesystem::equivalent(run.progress().resumed_from.parent_path(), directory_, ignored);
  return communicator_.broadcast_text(elsewhere ? "elsewhere" : "") == "elsewhere";
}

/// A training that is stopped between two epochs has not been saved there yet.
void Saving::on_end(TrainingRun& run) {
  if (!saved_last_ && (run.statistics().steps() > 0 || is_saved_elsewhere(run))) save_last(run);
  const bool saved = checkpointer_.finish();
  checkpointer_.release();
  unsaved_ = !saved;
  if (!run.left()) return;
  require_some_checkpoint(run, saved);
  const Message reason = reason_of_any_rank(reason_);
  sink_.on_message(Severity::note, "ended after step " + std::to_string(run.step()) + " of " +
                                       std::to_string(run.setup().total_steps) +
                                       (saved ? ", saved" : ", saved at an earlier step") +
                                       (reason.empty() ? "" : ", because " + reason) + "; " + setting("resume") +
                                       " goes on from there");
}

void Saving::require_some_checkpoint(TrainingRun& run, bool saved) const {
  agree(communicator_, [&] {
    if (saved || communicator_.rank() != 0 || !list_checkpoints(directory_).empty()) return;
    throw ResourceError("the training was to end after step " + std::to_string(run.step()) +
                        ", and could not be saved in " + directory_.string());
  });
}

Message Saving::failure() const {
  if (!unsaved_) return {};
  return "its last checkpoint could not be written in " + directory_.string() + "; make room, and " +
         setting("resume") + " does what is missing again";
}

void Saving::summarize(Summary& summary) const {
  summary.checkpoint.written = checkpointer_.written();
  summary.checkpoint.exposed_seconds = checkpointer_.exposed_seconds();
}

}  // namespace ronda
