#include <ronda/core/text.hpp>
#include <ronda/runtime/trainer/hooks/plateau.hpp>

namespace ronda {
namespace {

constexpr const char* early_stopping_name = "early_stopping";

constexpr const char* rate_reduction_name = "rate_reduction";

}  // namespace

/// A training that had ended so ends again, unless it is now to wait longer.
void EarlyStopping::on_start(TrainingRun& run) {
  loss_.go_on_from(run.kept_of(early_stopping_name));
  end_if_due(run);
}

void EarlyStopping::after_epoch(TrainingRun& run, const EpochReport& report) {
  loss_.hear(run.tested_loss(report), run.options().least_improvement);
  end_if_due(run);
}

void EarlyStopping::end_if_due(TrainingRun& run) {
  if (run.ending() || loss_.since() < run.options().early_stopping) return;
  TextWriter text;
  text << "ended after epoch " << run.progress().history.size() << ": the " << run.tested_with()
       << " loss has not improved on " << loss_.best() << " for "
       << counted(static_cast<std::int64_t>(loss_.since()), "epoch");
  run.sink().on_note(text.str());
  ended_ = true;
  run.end();
}

void EarlyStopping::before_save(TrainingRun&, CheckpointManifest& manifest) {
  manifest.hooks[early_stopping_name] = loss_.kept();
}

void EarlyStopping::summarize(Summary& summary) const { summary.monitor.early = ended_; }

void RateReduction::on_start(TrainingRun& run) {
  const auto kept = run.kept_of(rate_reduction_name);
  factor_ = kept.empty() ? 1 : kept.front();
  if (!kept.empty()) loss_.go_on_from(kept.subspan(1));
  run.set_rate_factor(factor_);
}

void RateReduction::after_epoch(TrainingRun& run, const EpochReport& report) {
  loss_.hear(run.tested_loss(report), run.options().least_improvement);
  if (run.ending() || loss_.since() < run.options().reduce_rate_after) return;
  factor_ *= run.options().reduce_rate_factor;
  TextWriter text;
  text << "the learning rate is multiplied with " << factor_ << " from here on: the " << run.tested_with()
       << " loss has not improved on " << loss_.best() << " for "
       << counted(static_cast<std::int64_t>(loss_.since()), "epoch");
  run.sink().on_note(text.str());
  loss_.start_waiting_anew();
  run.set_rate_factor(factor_);
}

void RateReduction::before_save(TrainingRun&, CheckpointManifest& manifest) {
  std::vector<double>& kept = manifest.hooks[rate_reduction_name];
  kept = {factor_};
  for (const double number : loss_.kept()) kept.push_back(number);
}

}  // namespace ronda
