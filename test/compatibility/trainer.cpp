#include <cmath>
#include <fstream>

#include "check.hpp"

namespace compatibility {
namespace {

/// Counts what a training reports.
class Counts final : public ronda::EventSink {
 public:
  void on_start(const ronda::StartReport&) override { ++starts; }
  void on_step(const ronda::StepReport& report) override { steps = report.step; }
  void on_epoch(const ronda::EpochReport& report) override { epochs = report.epoch; }
  void on_warning(std::string_view) override { ++warnings; }

  std::uint64_t starts = 0, steps = 0, epochs = 0, warnings = 0;
};

ronda::TrainingOptions options_for(const SharedFolder& folder) {
  ronda::TrainingOptions options{
      .epochs = 4, .global_batch_size = 40, .optimizer = {.name = "adam"}, .learning_rate = 0.05};
  options.schedule = "cosine";
  options.warmup_epochs = 0.5;
  options.clip_norm = 5;
  options.seed = 3;
  options.threads = 1;
  options.freeze = {};
  options.save = folder / "model.safetensors";
  options.summary_json = folder / "summary.json";
  options.metrics = folder / "metrics.jsonl";
  options.predictions = folder / "outputs.safetensors";
  options.metadata = {{"author", "somebody"}};
  return options;
}

}  // namespace

void trainer(ronda::World& world) {
  using namespace ronda;
  const SharedFolder folder(world);
  const MemoryDataset train = points(400), test = points(100);
  const Sequential model(Dense(8), ReLU(), Dense(2));
  const SoftmaxCrossEntropy loss;
  Counts counts;
  std::uint64_t steps = 0, epochs = 0, tests = 0;
  const TrainingOptions options = options_for(folder);
  Trainer trainer(world, model, loss, options, &counts);
  trainer.add(
      {.step = [&](const StepReport& report) { steps += report.samples > 0 && std::isfinite(report.loss) ? 1 : 0; },
       .epoch = [&](const EpochReport&) { ++epochs; },
       .evaluation = [&](const Evaluation&) { ++tests; }});
  trainer.add(TopKAccuracy(1));
  const Evaluation result = trainer.fit(train, test);
  require(result.metric > 0.9, "a trained model");
  require(std::abs(number_of(result.metrics, "top1") - result.metric) < 1e-6, "its accuracy by a metric too");
  require(steps == 40 && epochs == 4 && tests == 4, "a call of each step, epoch and test");
  require(!trainer.left() && trainer.strategy().parameter_hash().size() > 8, "a model that is there");
  if (world.rank() == 0) {
    require(counts.starts == 1 && counts.steps == 40 && counts.epochs == 4, "a sink that is told of everything");
    for (const auto& file : {options.save, options.summary_json, options.metrics, options.predictions})
      require(std::filesystem::file_size(file) > 0, file.string());
    std::ifstream lines(options.metrics);
    std::string line;
    require(std::getline(lines, line) && line.starts_with("{\"step\": 1, \"epoch\": 1, \"loss\": "), "a line a step");
    const Safetensors saved = read_safetensors(options.save);
    require(saved.metadata.at("author") == "somebody", "metadata");
    require(saved.tensors[0].name == "dense1.weight" && saved.tensors[0].shape == Shape{8, 1},
            "PyTorch's names and shapes");
  }
  static_cast<void>(trainer.fit(train));
  require(trainer.statistics().steps() == 80, "a second fit that goes on");

  TrainingOptions again{.epochs = 1, .learning_rate = 0.01};
  again.init = options.save;
  again.early_stopping = 1;
  again.validation_split = 0.25;
  again.threads = 1;
  Trainer second(world, model, loss, again);
  require(second.fit(train, test).metric > 0.9, "a training that begins with a saved model");
}

}  // namespace compatibility
