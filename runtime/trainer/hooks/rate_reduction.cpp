#include <ronda/core/text.hpp>
#include <ronda/runtime/trainer/hooks/rate_reduction.hpp>

namespace ronda {
namespace {

constexpr const char* rate_reduction_name = "rate_reduction";

}  // namespace

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
