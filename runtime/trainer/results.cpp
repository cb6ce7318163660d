// What a training that has reached its end leaves: predictions, parameters, a summary.
#include <ronda/collectives/phase.hpp>
#include <ronda/runtime/io/safetensors.hpp>
#include <ronda/runtime/trainer/parameter_files.hpp>
#include <ronda/runtime/trainer/trainer.hpp>
#include <ronda/runtime/trainer/version.hpp>

#include <algorithm>

namespace ronda {

void Trainer::write_predictions(const Dataset& test) {
  // Each rank fills in the rows of its samples and leaves the others zero: their sum is the whole.
  const Phase phase(world_.communicator(), Activity::writing);
  std::vector<float> all;
  std::size_t batch_number = 0, columns = 0;
  test_loader_->seek(1);
  strategy_->evaluate(*test_loader_, [&](const Batch&, const Tensor& outputs) {
    columns = static_cast<std::size_t>(outputs.shape().without_batch().count());
    all.resize(test.size() * columns);
    const Range rows = test_loader_->plan().part(batch_number++);
    std::copy_n(outputs.pointer<float>(), rows.size() * columns,
                all.begin() + static_cast<std::ptrdiff_t>(rows.begin * columns));
  });
  strategy_->communicator().allreduce(Tensor(std::span(all)));
  agree(world_.communicator(), [&] {
    const Shape shape{static_cast<std::int64_t>(test.size()), static_cast<std::int64_t>(columns)};
    const NamedTensor tensor{"outputs", shape, std::move(all)};
    if (world_.rank() == 0) write_safetensors(options_.predictions, std::span(&tensor, 1));
  });
}

Summary Trainer::summary(const EpochReport& last) const {
  const GradientExchange& gradients = strategy_->gradients();
  Summary summary;
  summary.application = options_.application;
  summary.version = version();
  summary.world_size = world_.size();
  summary.hosts = world_.communicator().topology().nodes;
  summary.device = platform_.device.context->device().text();
  summary.dtype = name_of(options_.precision);
  summary.global_batch_size = options_.global_batch_size;
  summary.epochs = history_.size();
  summary.steps = step_;
  summary.samples = samples();
  summary.parameters = strategy_->parameter_count();
  summary.train_seconds = train_seconds();
  summary.samples_per_second = statistics_.samples_per_second();
  summary.step_microseconds = {statistics_.microseconds(0.5), statistics_.microseconds(0.99)};
  summary.final_train_loss = last_step_.loss;
  summary.test_loss = last.test_loss;
  summary.test_accuracy = last.test_accuracy;
  summary.parameter_hash = strategy_->parameter_hash();
  summary.allreduce.algorithm = gradients.buckets().back().algorithm;
  summary.allreduce.buckets = gradients.buckets().size();
  summary.allreduce.exposed_seconds = gradients.exposed_seconds();
  if (resumption_) summary.checkpoint.resumed_step = resumption_->manifest.step;
  if (checkpointer_) {
    summary.checkpoint.written = checkpointer_->written();
    summary.checkpoint.exposed_seconds = checkpointer_->exposed_seconds();
  }
  summary.guard.audits = guarded_.audits;
  summary.guard.divergences = guarded_.divergences;
  summary.guard.audit_seconds = guarded_.audit_seconds;
  summary.guard.nonfinite_steps = guarded_.nonfinite_steps;
  summary.guard.overflow_steps = guarded_.overflow_steps;
  summary.guard.rollbacks = guarded_.rollbacks;
  summary.startup_seconds = startup_seconds_;
  summary.plan_hash = strategy_->plan_hash();
  for (const auto& bucket : gradients.buckets()) {
    summary.allreduce.bytes_per_step += bucket.bytes;
    if (bucket.compression != Compression::none) summary.allreduce.compression = name_of(bucket.compression);
  }
  for (const auto& epoch : history_)
    summary.epoch_history.push_back(
        {epoch.epoch, epoch.train_loss, epoch.train_accuracy, epoch.test_accuracy, epoch.seconds});
  return summary;
}

void Trainer::write_files(const EpochReport& last) {
  const Phase phase(world_.communicator(), Activity::writing);
  for (const auto& line : strategy_->gradients().report()) sink_.on_detail(line);
  const Summary found = summary(last);
  agree(world_.communicator(), [&] {
    if (world_.rank() != 0) return;
    if (!options_.save.empty()) save_parameters(options_.save, strategy_->parameters());
    if (!options_.summary_json.empty()) write_summary(options_.summary_json, found);
  });
}

}  // namespace ronda
