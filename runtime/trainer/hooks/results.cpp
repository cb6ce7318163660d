#include <ronda/collectives/phase.hpp>
#include <ronda/core/process.hpp>
#include <ronda/core/state.hpp>
#include <ronda/runtime/io/safetensors.hpp>
#include <ronda/runtime/trainer/hooks/results.hpp>
#include <ronda/runtime/trainer/parameter_files.hpp>
#include <ronda/runtime/trainer/version.hpp>

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>
#include <vector>

namespace ronda {
namespace {

/// Each rank fills in the rows of its samples and leaves the others zero: their sum is the whole.
NamedTensor predictions_of(TrainingRun& run) {
  const std::size_t rows = run.test_data().size();
  const auto columns = static_cast<std::size_t>(run.strategy().plan().outputs.without_batch().count());
  std::size_t batch_number = 0;
  std::vector<float> all(rows * columns);
  run.evaluate([&](const Batch&, const Tensor& outputs) {
    const Range part = run.test_plan().part(batch_number++);
    std::copy_n(outputs.pointer<float>(), part.size() * columns,
                all.begin() + static_cast<std::ptrdiff_t>(part.begin * columns));
  });
  run.strategy().communicator().allreduce(Tensor(std::span(all)));
  NamedTensor outputs{"outputs", Shape{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)}};
  const DataUnits& units = run.options().prediction_units;
  if (units == DataUnits())
    outputs.values = std::move(all);
  else
    for (const float output : all) outputs.doubles.push_back(units.of(output));
  return outputs;
}

void add_exchange(Summary& summary, const GradientExchange& gradients) {
  const ExchangeReport report = gradients.report();
  if (!report.buckets.empty()) summary.allreduce.algorithm = report.buckets.back().algorithm;
  summary.allreduce.buckets = report.buckets.size();
  summary.allreduce.exposed_seconds = gradients.exposed_seconds();
  for (const auto& bucket : report.buckets) {
    summary.allreduce.bytes_per_step += bucket.bytes;
    if (bucket.compression != Compression::none) summary.allreduce.compression = name_of(bucket.compression);
  }
  const SynchronisationCosts& costs = report.synchronisations;
  const ServerTraffic& traffic = report.traffic;
  summary.servers = {traffic.servers, traffic.pushed_bytes, traffic.pulled_bytes, traffic.dropped, traffic.staleness};
  summary.synchronisations = {costs.count, costs.sent_bytes, costs.waited_seconds, costs.total_seconds};
  summary.allreduce.bytes_per_step += static_cast<std::uint64_t>(std::llround(report.sparse_bytes_per_step));
}

Summary::Epoch summary_of(const EpochReport& epoch) {
  Summary::Epoch summary;
  summary.epoch = epoch.epoch;
  summary.train_loss = epoch.train_loss;
  summary.train_metric = epoch.train_metric;
  summary.seconds = epoch.seconds;
  if (epoch.evaluated) {
    summary.test_loss = epoch.test_loss;
    summary.test_metric = epoch.test_metric;
    summary.test_metrics = epoch.test_metrics;
  }
  if (epoch.validated) {
    summary.validation_loss = epoch.validation_loss;
    summary.validation_metric = epoch.validation_metric;
    summary.validation_metrics = epoch.validation_metrics;
  }
  return summary;
}

/// Collective.
Summary summary_of(TrainingRun& run, std::span<const StageCosts> stages) {
  const TrainingOptions& options = run.options();
  const TrainingProgress& progress = run.progress();
  Summary summary;
  summary.application = options.application;
  summary.version = version();
  summary.world_size = run.world().size();
  summary.hosts = run.world().communicator().topology().nodes;
  summary.device = run.strategy().device().context->device().text();
  summary.dtype = name_of(options.precision);
  summary.global_batch_size = options.global_batch_size;
  summary.epochs = progress.history.size();
  summary.steps = run.step();
  summary.samples = run.samples();
  summary.parameters = run.strategy().state().parameter_count();
  summary.gradient_bytes = run.strategy().plan().memory.gradients;
  summary.train_seconds = run.train_seconds();
  summary.samples_per_second = run.statistics().samples_per_second();
  summary.step_microseconds = {run.statistics().microseconds(0.5), run.statistics().microseconds(0.99)};
  summary.final_train_loss = progress.last_loss;
  summary.metric = run.metric();
  summary.validates = run.validates();
  if (run.test_data().size() > 0) {
    const Evaluation result = run.result();
    summary.test_loss = result.loss;
    summary.test_metric = result.metric;
    summary.test_metrics = result.metrics;
  }
  summary.parameter_hash = run.strategy().parameter_hash();
  summary.plan_hash = run.strategy().plan_hash();
  summary.checkpoint.resumed_step = progress.resumed_step;
  add_exchange(summary, run.strategy().exchange());
  for (const StageCosts& stage : stages)
    summary.stages.push_back({stage.begins, stage.parameters, stage.memory, stage.computing_seconds,
                              stage.waiting_seconds, stage.bubble(), stage.predicted_bubble});
  const SplitCosts split = run.strategy().split();
  const double steps = std::max(1.0, static_cast<double>(run.step() - progress.resumed_step));
  summary.split = {split.parts, split.layers, split.parameters,
                   static_cast<std::uint64_t>(static_cast<double>(split.bytes) / steps), split.waiting_seconds};
  for (const auto& epoch : progress.history) summary.epoch_history.push_back(summary_of(epoch));
  for (const auto& option : in_words(options)) summary.options.emplace_back(option.name, option.value);
  run.summarize(summary);
  return summary;
}

}  // namespace

void Results::before_step(TrainingRun& run, StepFlags&) {
  if (run.at_first_step()) startup_seconds_ = seconds_since_process_start();
}

void Results::on_end(TrainingRun& run) {
  if (run.left()) return;
  run.test_in_the_end();
  const Phase phase(run.world().communicator(), Activity::writing);
  for (const auto& line : run.strategy().exchange().report().costs) run.sink().on_detail(line);
  const std::vector<StageCosts> stages = run.strategy().stages();
  for (const auto& line : stage_table(stages)) run.sink().on_detail(line);
  run.strategy().state().average_states();
  run.strategy().state().with_average([&] { write_results(run, stages); });
  if (run.options().predictions.empty() || run.test_data().size() == 0) return;
  const NamedTensor outputs = predictions_of(run);
  attempt(run, [&] { write_safetensors(run.options().predictions, std::span(&outputs, 1)); });
}

/// Of the parameters, or their average.
void Results::write_results(TrainingRun& run, std::span<const StageCosts> stages) {
  Summary summary = summary_of(run, stages);
  summary.startup_seconds = startup_seconds_;
  const TrainingOptions& options = run.options();
  if (!options.save.empty())
    attempt(run, [&] {
      StateList states;
      run.strategy().state().visit_layer_states(states);
      save_parameters(options.save, run.strategy().parameters(), states.states(), options.metadata);
    });
  if (!options.summary_json.empty()) attempt(run, [&] { write_summary(options.summary_json, summary); });
}

/// Runs `write` on rank 0. Collective.
void Results::attempt(TrainingRun& run, FunctionRef<void()> write) {
  Message failure;
  try {
    if (run.world().rank() == 0) write();
  } catch (const std::exception& error) {
    failure = message_of(error);
  }
  failure = Message::unpacked(run.world().communicator().broadcast_text(failure.packed()));
  if (!failure.empty()) failures_.push_back(std::move(failure));
}

}  // namespace ronda
