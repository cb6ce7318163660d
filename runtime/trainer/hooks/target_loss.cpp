#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/trainer/hooks/target_loss.hpp>

#include <cmath>

namespace ronda {

void TargetLoss::on_start(TrainingRun& run) {
  const double target = *run.options().target_loss;
  if (!std::isfinite(target)) throw InputError(setting("target_loss", shortest(target)) + ": must be a finite number");
  end_if_reached(run);
}

void TargetLoss::end_if_reached(TrainingRun& run) {
  const auto& history = run.progress().history;
  if (run.ending() || history.empty()) return;
  const double loss = TrainingRun::tested_loss(history.back()), target = *run.options().target_loss;
  if (!(loss <= target)) return;
  TextWriter text;
  text << "ended after epoch " << history.size() << ": the " << run.tested_with() << " loss of " << loss
       << " has reached the target of " << target;
  run.sink().on_note(text.str());
  reached_ = true;
  run.end();
}

void TargetLoss::summarize(Summary& summary) const {
  if (reached_) summary.monitor.early = true;
}

}  // namespace ronda
