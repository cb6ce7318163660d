#include <ronda/core/counted.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/state.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/restore.hpp>
#include <ronda/runtime/trainer/going_on.hpp>

#include <algorithm>
#include <charconv>
#include <string>

namespace ronda {
namespace {

/// Samples a step of the training that was saved; at most those of an epoch.
std::uint64_t global_batch_of(const Resumption& resumption) {
  const auto found = resumption.manifest.options.find("global-batch-size");
  const std::string text = found == resumption.manifest.options.end() ? "" : found->second;
  std::uint64_t batch = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), batch);
  if (error != std::errc() || end != text.data() + text.size() || batch == 0 || batch > std::uint64_t{1} << 40)
    throw InputError(manifest_of(resumption.folder).string() +
                     ": its options have no sound global-batch-size; take another checkpoint");
  return batch;
}

void tell_exactness(const Resumption& resumption, const TrainingSetup& setup, Strategy& strategy, EventSink& sink) {
  const std::string why =
      why_not_exact(resumption.manifest, strategy.communicator(), setup.environment, strategy.plan_lines());
  if (why.empty()) return;
  if (setup.options.exact)
    throw InputError(".exact: this run cannot have the bits of one that was never interrupted: " + why);
  sink.on_note("this run goes on within rounding, not to the bit: " + why);
}

void restore_states(const Resumption& resumption, const TrainingOptions& options, Strategy& strategy, EventSink& sink) {
  const auto may_change = [&](const char* name) {
    return std::ranges::find(options.allow_changes, name) != options.allow_changes.end();
  };
  const bool other_states = may_change("optimizer") || may_change("dtype") ||  // float16 alone has a loss scale
                            may_change("ema-decay");
  StateList states;
  strategy.visit(states);
  for (const auto& note : restore(resumption.folder, resumption.manifest, states.states(), other_states,
                                  strategy.communicator(), strategy.device(), strategy.state().divided().pieces()))
    sink.on_note(note);
  const auto& theirs = resumption.manifest.options;
  const auto decay = theirs.find("ema-decay");
  if (decay == theirs.end() || decay->second == "0") strategy.state().restart_average();  // it has none to go on with
}

/// And the updates to go on from.
std::pair<TrainingProgress, std::uint64_t> progress_of(const Resumption& resumption, const TrainingSetup& setup,
                                                       const BatchPlan& plan, EventSink& sink) {
  const CheckpointManifest& manifest = resumption.manifest;
  TrainingProgress progress{.step = manifest.step,
                            .step_in_epoch = manifest.step_in_epoch,
                            .current = manifest.current,
                            .weight = manifest.weight,
                            .history = manifest.history,
                            .last_loss = manifest.last_loss,
                            .last_metric = manifest.last_metric,
                            .samples_before = manifest.samples,
                            .seconds_before = manifest.train_seconds,
                            .resumed_step = manifest.step,
                            .resumed_from = resumption.folder,
                            .hooks = manifest.hooks};
  std::uint64_t updates = manifest.updates;
  const std::uint64_t their_batch = global_batch_of(resumption);
  if (their_batch != plan.global_batch()) {
    // Steps are others now: what counts is how many samples of the epoch are done.
    const std::uint64_t steps = (plan.size() + their_batch - 1) / their_batch;
    const std::uint64_t done = std::min(manifest.step_in_epoch, steps) * their_batch;
    progress.step_in_epoch =
        std::min<std::uint64_t>((done + plan.global_batch() - 1) / plan.global_batch(), plan.steps_per_epoch());
    if (const std::uint64_t begun = progress.step_in_epoch * plan.global_batch(); begun > done && begun <= plan.size())
      sink.on_note(counted(static_cast<std::int64_t>(begun - done), "sample") +
                   " of this epoch are left out: with another global batch no step begins where the checkpoint ends");
    progress.step = updates = progress.history.size() * plan.steps_per_epoch() + progress.step_in_epoch;
  }
  if (progress.history.size() + 1 != manifest.epoch || progress.step_in_epoch > plan.steps_per_epoch() ||
      progress.step > setup.total_steps)
    throw InputError(resumption.folder.string() + " is at step " + std::to_string(progress.step) + ", in epoch " +
                     std::to_string(manifest.epoch) + "; this training ends after " +
                     counted(static_cast<std::int64_t>(setup.total_steps), "step") + " (.steps, .epochs)");
  return {progress, updates};
}

/// On rank 0.
void set_later_ones_aside(const TrainingOptions& options, std::uint64_t step, EventSink& sink) {
  if (options.resume_from.empty() || options.checkpoint_dir.empty()) return;
  for (const auto& path : set_aside_after(options.checkpoint_dir, step))
    sink.on_note("a later checkpoint is set aside as " + path.string());
}

}  // namespace

TrainingProgress go_on_from(const Resumption& resumption, const TrainingSetup& setup, const BatchPlan& plan,
                            Strategy& strategy, EventSink& sink) {
  const Communicator& communicator = strategy.communicator();
  agree(communicator, [&] { tell_exactness(resumption, setup, strategy, sink); });
  restore_states(resumption, setup.options, strategy, sink);
  TrainingProgress progress;
  agree(communicator, [&] {
    std::uint64_t updates = 0;
    std::tie(progress, updates) = progress_of(resumption, setup, plan, sink);
    strategy.state().set_updates(updates);
  });
  sink.on_note("going on from " + resumption.folder.string() + ": after step " + std::to_string(progress.step) +
               " of " + std::to_string(setup.total_steps) + ", in epoch " + std::to_string(resumption.manifest.epoch));
  agree(communicator, [&] {
    if (communicator.rank() == 0) set_later_ones_aside(setup.options, resumption.manifest.step, sink);
  });
  return progress;
}

}  // namespace ronda
