#include <memory>

#include "check.hpp"

namespace compatibility {
namespace {

using namespace ronda;

/// Counts the steps of a training, over its restarts.
class StepCount final : public Hook {
 public:
  explicit StepCount(double& count) : count_(count) {}
  void on_start(TrainingRun& run) override {
    const std::span<const double> kept = run.kept_of("step_count");
    count_ = kept.empty() ? 0 : kept[0];
  }
  [[nodiscard]] bool settles_after(std::uint64_t step) const override { return step == 2; }
  void after_step(TrainingRun& run, const StepReport& report) override {
    ++count_;
    require(run.step() == report.step && run.options().global_batch_size == 20, "a run that a hook can look at");
  }
  void before_save(TrainingRun&, CheckpointManifest& manifest) override { manifest.hooks["step_count"] = {count_}; }

 private:
  double& count_;
};

}  // namespace

void own_hook(World& world) {
  const SharedFolder folder(world);
  const MemoryDataset data = points(100);
  const Sequential model(Dense(2));
  const SoftmaxCrossEntropy loss;
  double count = 0;
  for (const std::uint64_t epochs : {1, 2}) {
    TrainingOptions options{.epochs = epochs, .global_batch_size = 20, .learning_rate = 0.1, .threads = 1};
    options.checkpoint_dir = folder / "checkpoints";
    options.checkpoint_every.steps = 2;
    options.resume = true;
    Trainer trainer(world, model, loss, options);
    trainer.add(std::make_unique<StepCount>(count));
    static_cast<void>(trainer.fit(data));
  }
  require(count == 10, "a hook's state that a resumed training has");
}

}  // namespace compatibility
