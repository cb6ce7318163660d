// What watches over a training: replicas that are compared, numbers that have to be finite.
#include <ronda/collectives/phase.hpp>
#include <ronda/core/clock.hpp>
#include <ronda/core/error.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/restore.hpp>
#include <ronda/runtime/checkpoint/state_copy.hpp>
#include <ronda/runtime/trainer/trainer.hpp>

#include <array>
#include <cmath>
#include <utility>

namespace ronda {
namespace {

/// Then no batch is to blame, but the parameters.
constexpr std::uint64_t most_in_a_row = 10;

[[noreturn]] void fail_together(const std::string& text) {
  Error error(text);
  error.set_agreed();
  throw error;
}

}  // namespace

Trainer::Position Trainer::position(const EpochReport& report) const {
  return {step_, report.epoch, step_in_epoch_, strategy_->updates()};
}

void Trainer::audit(BatchLoader& loader, const EpochReport& report) {
  const double start = steady_seconds();
  ++guarded_.audits;
  strategy_->gather_state();
  if (!audit_->equal()) {
    ++guarded_.divergences;
    const std::string when = "the replicas are no longer one model after step " + std::to_string(step_) +
                             " (audited after step " + std::to_string(audited_.step) + "): ";
    const bool repairs = options_.on_divergence == OnDivergence::rollback;
    ReplicaAudit::Finding finding = audit_->majority();
    const bool told = !finding.ranks.empty();
    if (!told || repairs) {
      audit_->go_back();
      repeat_since(audited_, loader, report);
      if (!audit_->equal())
        fail_together(when + finding.text + "; and they differ again, computed from the audited copy");
      if (!told) finding = audit_->judge();
    }
    if (!repairs)
      fail_together(when + finding.text +
                    "; go on from a checkpoint (--resume), or let it repair itself (--on-divergence rollback)");
    sink_.on_warning(when + finding.text + "; all ranks went back to the audited copy and did these steps again");
  }
  audit_->keep();
  audited_ = position(report);
  guarded_.audit_seconds += steady_seconds() - start;
}

/// All ranks are where they were after `from`: does the steps since once more, without a word.
void Trainer::repeat_since(const Position& from, BatchLoader& loader, const EpochReport& report) {
  strategy_->set_updates(from.updates);
  const StepFlags raised = strategy_->raised();  // a hook may have asked to stop just now
  strategy_->raise({});
  loader.seek(from.epoch, static_cast<std::size_t>(from.step_in_epoch));
  std::uint64_t in_epoch = from.step_in_epoch;
  for (std::uint64_t step = from.step; step < step_; ++step) {
    if (in_epoch == loader.plan().steps_per_epoch()) {
      strategy_->average_states();  // as at every epoch's end
      in_epoch = 0;
    }
    ++in_epoch;
    for (std::size_t micro = 0; micro + 1 < loader.plan().micro_batches(); ++micro)
      strategy_->accumulate(loader.next());
    static_cast<void>(strategy_->train_step(loader.next()));
  }
  loader.seek(report.epoch, static_cast<std::size_t>(step_in_epoch_));
  strategy_->raise(raised);
  strategy_->gather_state();
}

/// Injected faults of the numbers that a step works on.
void Trainer::spoil(const Batch& batch) {
  if (faults_.happens(FaultKind::flip, step_ + 1)) {
    const Parameter& parameter = strategy_->parameters().front();
    StatesOnHost states(std::array{State{parameter.name, parameter.trained()}}, platform_.device);
    states.fetch();
    states.wait();
    const Tensor& value = states.states().front().tensor;
    flip_bit(value.pointer<float>()[value.desc().count() / 2]);
    states.send();
    states.wait();
  }
  if (faults_.happens(FaultKind::nan, step_ + 1)) *batch.input().pointer<float>() = std::nanf("");
}

/// After a step; it was not finite on all ranks or on none. What is spoiled by now is never saved: a step is looked at
/// before anything is written that knows of it.
void Trainer::guard(const Batch& batch) {
  if (last_step_.overflow) {
    ++guarded_.overflow_steps;
    sink_.on_detail("step " + std::to_string(step_ + 1) +
                    " is not applied: a gradient is beyond float16; the loss scale is " +
                    std::to_string(last_step_.loss_scale) + " from here on");
  }
  if (!last_step_.nonfinite && !last_step_.spoiled) {
    guarded_.nonfinite_in_a_row = 0;
    return;
  }
  ++guarded_.nonfinite_steps;
  ++guarded_.nonfinite_in_a_row;
  const std::string why =
      "step " + std::to_string(step_ + 1) + " is not finite: " + strategy_->explain_nonfinite(batch);
  const OnNonfinite choice = options_.on_nonfinite.value_or(OnNonfinite::stop);
  if (choice == OnNonfinite::stop)
    fail_together(why + "; a smaller --learning-rate or --clip-norm may help, --on-nonfinite skip goes on");
  if (guarded_.nonfinite_in_a_row >= most_in_a_row)
    fail_together(why + "; the " + std::to_string(most_in_a_row) +
                  "th step in a row: no batch is to blame, but the parameters");
  if (choice == OnNonfinite::rollback) return roll_back(why);
  if (last_step_.spoiled) fail_together(why + "; the update is done, and nothing is left to go on with");
  sink_.on_warning(why + "; it is skipped");
}

/// Parameters and optimizer become the last checkpoint's; the data goes on, so that the same batch is not met again.
void Trainer::roll_back(const std::string& why) {
  static_cast<void>(checkpointer_->finish());
  std::string folder;
  agree(world_.communicator(), [&] {
    if (world_.rank() != 0) return;
    const Phase phase(world_.communicator(), Activity::reading, reading_limit(options_.checkpoint_dir));
    const auto newest = newest_whole(options_.checkpoint_dir, [&](const CheckpointPlace&, const Error& error) {
      sink_.on_warning(std::string("passed over: ") + error.what());
    });
    if (newest) folder = newest->path.string();
  });
  folder = world_.communicator().broadcast_text(folder);
  if (folder.empty()) fail_together(why + "; there is no checkpoint yet to go back to");
  CheckpointManifest manifest;
  agree(world_.communicator(), [&] { manifest = read_manifest(manifest_of(folder)); });
  StateList states;
  strategy_->visit(states);
  static_cast<void>(restore(folder, manifest, states.states(), false, world_.communicator(), platform_.device));
  strategy_->set_updates(manifest.updates);
  ++guarded_.rollbacks;
  sink_.on_warning(why + "; parameters and optimizer are those after step " + std::to_string(manifest.step) + " again");
}

}  // namespace ronda
