#include <ronda/core/clock.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/state.hpp>
#include <ronda/runtime/io/checkpoint_manifest.hpp>
#include <ronda/runtime/io/summary.hpp>
#include <ronda/runtime/trainer/hooks/audit.hpp>

namespace ronda {

void Audit::on_start(TrainingRun& run) {
  every_ = run.options().audit_every;
  StateList states;
  run.strategy().visit(states);
  replicas_.emplace(run.world().communicator(), states.states(), run.strategy().device());
  compare(run);
}

void Audit::after_step(TrainingRun& run, const StepReport& report) {
  // A copy from before states were set leads here no more.
  const bool last = run.settled() && run.ending();
  if (settles_after(report.step) || last || run.states_were_set() != states_were_set_) compare(run);
}

/// Another hook may have changed the rate: steps before and after that are not done once more together.
void Audit::after_epoch(TrainingRun& run, const EpochReport&) {
  if (run.states_were_set() != states_were_set_) compare(run);
}

void Audit::before_save(TrainingRun& run, CheckpointManifest& manifest) {
  if (kept_.step != run.step()) compare(run);
  manifest.audited = true;
}

void Audit::compare(TrainingRun& run) {
  const double start = steady_seconds();
  ++audits_;
  run.strategy().state().gather_state();
  if (!replicas_->equal()) mend(run);
  replicas_->keep();
  kept_ = run.position();
  states_were_set_ = run.states_were_set();
  seconds_ += steady_seconds() - start;
}

/// Returns with replicas that are equal and right, or throws. Who erred is known by a majority, or by computing the
/// steps since the copy once more.
void Audit::mend(TrainingRun& run) {
  ++divergences_;
  const std::string when = "the replicas are no longer one model after step " + std::to_string(run.step()) +
                           " (audited after step " + std::to_string(kept_.step) + "): ";
  const bool repairs = run.options().on_divergence == OnDivergence::rollback;
  ReplicaAudit::Finding finding = replicas_->majority();
  const bool told = !finding.ranks.empty();
  if (!told || repairs) {
    replicas_->go_back();
    run.repeat_since(kept_);
    if (!replicas_->equal())
      throw as_agreed(Error(when + finding.text + "; and they differ again, computed from the audited copy"));
    if (!told) finding = replicas_->judge();
  }
  if (!repairs)
    throw as_agreed(Error(when + finding.text + "; go on from a checkpoint (" + setting("resume") +
                          "), or let it repair itself (" + setting("on_divergence", "rollback") + ")"));
  run.sink().on_warning(when + finding.text + "; all ranks went back to the audited copy and did these steps again");
}

void Audit::summarize(Summary& summary) const {
  summary.guard.audits = audits_;
  summary.guard.divergences = divergences_;
  summary.guard.audit_seconds = seconds_;
}

}  // namespace ronda
