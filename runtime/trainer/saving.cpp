// How a training is saved on the way, and goes on from what was saved.
#include <ronda/core/counted.hpp>
#include <ronda/core/error.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/restore.hpp>
#include <ronda/runtime/checkpoint/snapshot.hpp>
#include <ronda/runtime/trainer/trainer.hpp>
#include <ronda/runtime/trainer/version.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

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

}  // namespace

/// Before anything is read there: no other run may change the folder meanwhile.
void Trainer::open_checkpoints() {
  if (options_.checkpoint_dir.empty()) return;
  leave_.emplace(options_.time_limit, options_.leave);
  checkpointer_ = std::make_unique<Checkpointer>(
      world_.communicator(), CheckpointOptions{options_.checkpoint_dir, options_.checkpoint_every, options_.keep},
      faults_, sink_);
}

/// Whether any rank is to end now, before the long work of planning: there is nothing to save then.
bool Trainer::leaves_at_once() {
  if (!leave_) return false;
  std::int32_t asked = leave_->due(0) ? 1 : 0;
  Communicator all = world_.communicator();
  all.allreduce(Tensor(std::span(&asked, 1)), ReduceOp::maximum);
  left_ = asked > 0;
  if (left_) sink_.on_note("ended before the first step of this run; nothing is lost, --resume goes on from there");
  return left_;
}

void Trainer::resume(const Dataset& train) {
  StateList states;
  strategy_->visit(states);
  if (checkpointer_) checkpointer_->bind(states.states(), platform_.device);
  if (!resumption_) return sink_.on_start(0);
  const CheckpointManifest& manifest = resumption_->manifest;
  agree(world_.communicator(), [&] { tell_exactness(); });
  const auto may_change = [&](const char* name) {
    return std::ranges::find(options_.allow_changes, name) != options_.allow_changes.end();
  };
  const bool other_states = may_change("optimizer") || may_change("dtype");  // float16 alone has a loss scale
  for (const auto& note :
       restore(resumption_->folder, manifest, states.states(), other_states, world_.communicator(), platform_.device))
    sink_.on_note(note);
  agree(world_.communicator(), [&] { set_position(manifest, train_plan(train)); });
  sink_.on_note("going on from " + resumption_->folder.string() + ": after step " + std::to_string(step_) + " of " +
                std::to_string(total_steps_) + ", in epoch " + std::to_string(manifest.epoch));
  agree(world_.communicator(), [&] {
    if (world_.rank() != 0 || options_.resume_from.empty() || !checkpointer_) return;
    for (const auto& path : set_aside_after(options_.checkpoint_dir, manifest.step))
      sink_.on_note("a later checkpoint is set aside as " + path.string());
  });
  sink_.on_start(manifest.step);
}

void Trainer::tell_exactness() {
  const std::string why =
      why_not_exact(resumption_->manifest, world_.communicator(), environment_, strategy_->plan_lines());
  if (why.empty()) return;
  if (options_.exact)
    throw InputError("--exact: this run cannot have the bits of one that was never interrupted: " + why);
  sink_.on_note("this run goes on within rounding, not to the bit: " + why);
}

void Trainer::set_position(const CheckpointManifest& manifest, const BatchPlan& plan) {
  step_ = manifest.step;
  step_in_epoch_ = manifest.step_in_epoch;
  epoch_weight_ = manifest.weight;
  history_ = manifest.history;
  last_step_.loss = manifest.last_loss;
  std::uint64_t updates = manifest.updates;
  const std::uint64_t their_batch = global_batch_of(*resumption_);
  if (their_batch != plan.global_batch()) {
    // Steps are others now: what counts is how many samples of the epoch are done.
    const std::uint64_t steps = (plan.size() + their_batch - 1) / their_batch;
    const std::uint64_t done = std::min(manifest.step_in_epoch, steps) * their_batch;
    step_in_epoch_ =
        std::min<std::uint64_t>((done + plan.global_batch() - 1) / plan.global_batch(), plan.steps_per_epoch());
    step_ = updates = history_.size() * plan.steps_per_epoch() + step_in_epoch_;
  }
  strategy_->set_updates(updates);
  if (history_.size() + 1 != manifest.epoch || step_in_epoch_ > plan.steps_per_epoch() || step_ > total_steps_)
    throw InputError(resumption_->folder.string() + " is at step " + std::to_string(step_) + ", in epoch " +
                     std::to_string(manifest.epoch) + "; this training ends after " +
                     counted(static_cast<std::int64_t>(total_steps_), "step") + " (--steps, --epochs)");
}

bool Trainer::asked_to_stop() const noexcept { return asked_to_stop_ || strategy_->raised().stop > 0; }

/// What this rank has to say to all in the step to come.
StepFlags Trainer::flags() const {
  StepFlags flags = checkpointer_ ? checkpointer_->flags() : strategy_->raised();
  flags.stop = asked_to_stop() ? 1 : 0;
  if (checkpointer_) flags.leave = leave_->due(checkpointer_->slowest_seconds() + slowest_test_) ? 1 : 0;
  return flags;
}

void Trainer::save_if_due(BatchLoader& loader, const EpochReport& report) {
  const bool due = checkpointer_->after_step(last_step_.flags, step_);
  settles_ = due;
  if (!in_flight_.empty()) return;  // what is saved is the training after the last step that was begun
  settles_ = false;
  const bool last = stopped_ || step_ == total_steps_;
  if (last) return save_last(loader, report);
  if (!due) return;
  make_savable(loader, report);
  checkpointer_->save(manifest(report));
}

void Trainer::save_last(BatchLoader& loader, const EpochReport& report) {
  make_savable(loader, report);
  checkpointer_->save_last(manifest(report));
}

/// What is saved is whole, and known to be good.
void Trainer::make_savable(BatchLoader& loader, const EpochReport& report) {
  if (audit_ && audited_.step != step_) audit(loader, report);
  strategy_->gather_state();
}

CheckpointManifest Trainer::manifest(const EpochReport& report) const {
  CheckpointManifest m;
  m.step = step_;
  if (world_.rank() != 0) return m;  // rank 0's counts
  m.application = options_.application;
  m.ronda = version();
  m.epoch = report.epoch;
  m.step_in_epoch = step_in_epoch_;
  m.updates = strategy_->updates();
  m.samples = samples();
  m.train_seconds = train_seconds();
  m.last_loss = std::isfinite(last_step_.loss) ? last_step_.loss : 0;
  m.options = options_that_matter_;
  m.environment = environment_;
  m.picks = strategy_->picks();
  m.plan = strategy_->plan_lines();
  m.current = report;
  m.weight = epoch_weight_;
  m.history = history_;
  m.audited = audit_ != nullptr && audited_.step == step_;
  return m;
}

std::uint64_t Trainer::samples() const {
  return statistics_.samples() + (resumption_ ? resumption_->manifest.samples : 0);
}

double Trainer::train_seconds() const {
  return statistics_.seconds() + (resumption_ ? resumption_->manifest.train_seconds : 0);
}

void Trainer::end_saving() {
  const bool saved = checkpointer_->finish();
  checkpointer_->release();
  unsaved_ = !saved;
  if (!left_) return;
  agree(world_.communicator(), [&] {
    if (saved || world_.rank() != 0 || !list_checkpoints(options_.checkpoint_dir).empty()) return;
    throw ResourceError("the training was to end after step " + std::to_string(step_) + ", and could not be saved in " +
                        options_.checkpoint_dir.string());
  });
  sink_.on_note("ended after step " + std::to_string(step_) + " of " + std::to_string(total_steps_) +
                (saved ? ", saved" : ", saved at an earlier step") + "; --resume goes on from there");
}

/// What was trained is in the files that were asked for; a run that ends with status 0 has its last checkpoint too.
void Trainer::require_saved() const {
  if (!unsaved_) return;
  ResourceError error("the training is done, but its last checkpoint could not be written in " +
                      options_.checkpoint_dir.string() + "; make room, and --resume does what is missing again");
  error.set_agreed();
  throw error;
}

}  // namespace ronda
