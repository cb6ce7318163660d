#include <ronda/core/error.hpp>
#include <ronda/core/state.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/restore.hpp>
#include <ronda/runtime/trainer/going_on.hpp>

#include <algorithm>
#include <charconv>
#include <functional>
#include <string>
#include <tuple>

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
    throw InputError(setting("exact") + ": this run cannot have the bits of one that was never interrupted: " + why);
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

/// Throws InputError for numbers that no training would write.
EpochBatches batches_of(const Resumption& resumption, std::uint64_t steps_per_epoch) {
  const auto& [done, skipped] = std::tie(resumption.manifest.step_in_epoch, resumption.manifest.skipped_batches);
  const std::uint64_t end = std::min(done, steps_per_epoch) + skipped.size();
  if (skipped.empty()) return {done, {}};
  if (done == 0 || end > steps_per_epoch || skipped.back() + 1 >= end ||
      std::ranges::adjacent_find(skipped, std::greater_equal()) != skipped.end())
    throw InputError(manifest_of(resumption.folder).string() + ": skipped_batches has " +
                     std::to_string(skipped.size()) + " numbers that do not fit an epoch of " +
                     std::to_string(steps_per_epoch) + " steps, " + std::to_string(done) +
                     " of them done; take another checkpoint");
  return {done, skipped};
}

/// The same epoch in batches of another size. Batches without a done sample remain to be taken.
/// @param left_out  number of samples that are not done and in no remaining batch
EpochBatches rebatched(const EpochBatches& theirs, std::uint64_t their_batch, const BatchPlan& plan,
                       std::uint64_t& left_out) {
  const std::uint64_t size = plan.size(), batch = plan.global_batch(), steps = plan.steps_per_epoch();
  std::vector<std::pair<std::uint64_t, std::uint64_t>> undone;  // samples, in ascending order
  const auto add = [&](std::uint64_t begin, std::uint64_t end) {
    if (!undone.empty() && undone.back().second == begin)
      undone.back().second = end;
    else if (begin < end)
      undone.emplace_back(begin, end);
  };
  for (const std::uint64_t skipped : theirs.skipped())
    add(skipped * their_batch, std::min(size, (skipped + 1) * their_batch));
  const std::uint64_t their_steps = (size + their_batch - 1) / their_batch;
  add(std::min(size, std::min(theirs.taken() + theirs.skipped().size(), their_steps) * their_batch), size);
  std::vector<std::uint64_t> skipped;
  std::uint64_t end = steps;  // one after the last batch with a done sample
  for (const auto& [from, to] : undone) {
    const std::uint64_t first = (from + batch - 1) / batch, last = to == size ? steps : to / batch;
    left_out += first < last ? first * batch - from + (to == size ? 0 : to - last * batch) : to - from;
    if (to == size) end = std::min(first, steps);
    for (std::uint64_t place = first; place < last && to != size; ++place) skipped.push_back(place);
  }
  return {end - skipped.size(), skipped};
}

/// And the updates to go on from.
std::pair<TrainingProgress, std::uint64_t> progress_of(const Resumption& resumption, const TrainingSetup& setup,
                                                       const BatchPlan& plan, EventSink& sink) {
  const CheckpointManifest& manifest = resumption.manifest;
  TrainingProgress progress{.step = manifest.step,
                            .batches = {},
                            .current = manifest.current,
                            .weight = manifest.weight,
                            .history = manifest.history,
                            .last_loss = manifest.last_loss,
                            .samples_before = manifest.samples,
                            .seconds_before = manifest.train_seconds,
                            .resumed_step = manifest.step,
                            .resumed_from = resumption.folder,
                            .hooks = manifest.hooks};
  std::uint64_t updates = manifest.updates;
  const std::uint64_t their_batch = global_batch_of(resumption);
  progress.batches = batches_of(resumption, (plan.size() + their_batch - 1) / their_batch);
  if (their_batch != plan.global_batch()) {
    // Steps have other samples now, so progress is counted by the samples of the epoch that are done.
    std::uint64_t left_out = 0;
    progress.batches = rebatched(progress.batches, their_batch, plan, left_out);
    if (left_out > 0)
      sink.on_note(counted(static_cast<std::int64_t>(left_out), "sample") +
                   " of this epoch are left out: with another global batch no step begins where the checkpoint ends");
    progress.step = updates = progress.history.size() * plan.steps_per_epoch() + progress.batches.taken();
  }
  if (progress.history.size() + 1 != manifest.epoch || progress.batches.taken() > plan.steps_per_epoch() ||
      progress.step > setup.total_steps)
    throw InputError(resumption.folder.string() + " is at step " + std::to_string(progress.step) + ", in epoch " +
                     std::to_string(manifest.epoch) + "; this training ends after " +
                     counted(static_cast<std::int64_t>(setup.total_steps), "step") + " (" + setting("steps") + ", " +
                     setting("epochs") + ")");
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
