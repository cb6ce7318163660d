#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/step/kept_data.hpp>
#include <ronda/runtime/strategy/step/step_runner.hpp>
#include <ronda/runtime/strategy/step/strategy.hpp>

#include <utility>

namespace ronda {

Strategy::Strategy(Communicator communicator, std::unique_ptr<Optimizer> optimizer, const MirroredOptions& options,
                   EventSink* sink)
    : communicator_(std::move(communicator)),
      sink_(sink != nullptr ? *sink : silence_),
      options_(options.completed()),
      shard_(shard_of(communicator_)),
      test_shard_(shard_),
      optimizer_(std::move(optimizer)) {}

Strategy::~Strategy() = default;

void Strategy::run_by(std::unique_ptr<StepRunner> runner) { runner_ = std::move(runner); }

void Strategy::check_memory() const {
  agree(communicator_, [&] {
    check_memory_limit(plan_.memory, options_.memory_limit, options_.shape.batch_capacity,
                       options_.shape.micro_batches);
  });
}

const GradientExchange& Strategy::exchange() const noexcept { return runner_->exchange(); }

// ---- steps ----------------------------------------------------------------------------------------------------------

StepResult Strategy::train_step(const Batch& batch) {
  if (steps_in_flight() > 0) throw LogicError("train_step with steps in flight; finish_step gives their results");
  begin_step(batch);
  return finish_step();
}

void Strategy::begin_step(const Batch& batch) { runner_->begin_step(batch, raised_); }
StepResult Strategy::finish_step() { return runner_->finish_step(); }
void Strategy::accumulate(const Batch& batch) { runner_->accumulate(batch, raised_); }
void Strategy::set_micro_batches(std::size_t count) { runner_->set_micro_batches(count); }
std::optional<std::size_t> Strategy::samples_for(std::size_t step, std::size_t steps) {
  return runner_->samples_for(step, steps);
}
std::size_t Strategy::steps_in_flight() const noexcept { return runner_->queue().in_flight(); }
std::size_t Strategy::max_in_flight() const noexcept { return runner_->queue().max_in_flight(); }
void Strategy::drain() noexcept { runner_->queue().drain(); }
void Strategy::synchronise_next() noexcept { runner_->synchronise_next(); }

// ---- between steps --------------------------------------------------------------------------------------------------

Evaluation Strategy::evaluate(BatchLoader& loader, const SeeOutputs& see, const Metrics& metrics) {
  return runner_->evaluate(plan_.outputs, loader, see, metrics);
}

std::string Strategy::explain_nonfinite(const Batch& batch) { return runner_->explain_nonfinite(batch); }

bool Strategy::keeps(const Dataset& data) const noexcept { return runner_->queue().keeps(data); }

void Strategy::keep_data(std::span<const Dataset* const> data) {
  KeptDataOptions kept{.share = options_.device_data.share};
  if (options_.memory_limit > 0) kept.memory_left = options_.memory_limit - plan_.memory.total();  // checked before
  plan_.memory.data =
      keep_on_devices(communicator_, device(), runner_->queue(), data, options_.platform.gather, kept, sink_);
}

void Strategy::forget_data() noexcept {
  plan_.memory.data = 0;
  runner_->queue().forget_data();
}

TrainingState& Strategy::state() noexcept { return runner_->state(); }
const TrainingState& Strategy::state() const noexcept { return runner_->state(); }

}  // namespace ronda
