#include <ronda/core/clock.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/finite.hpp>
#include <ronda/core/number.hpp>
#include <ronda/runtime/strategy/mirrored_strategy.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace ronda {
namespace {

/// Outputs on the host, in float32.
void show(const MirroredStrategy::SeeOutputs& see, const Batch& batch, const Tensor& outputs) {
  if (outputs.dtype() == DType::float32) return see(batch, outputs);
  std::vector<float> numbers = floats_of(outputs);
  see(batch, Tensor({outputs.shape(), DType::float32, outputs.desc().layout}, numbers.data()));
}

}  // namespace

// ---- a step ---------------------------------------------------------------------------------------------------------

StepResult MirroredStrategy::train_step(const Batch& batch) {
  const FlushDenormals flushing = arithmetic();
  if (device_) {
    if (steps_in_flight() > 0) throw LogicError("train_step with steps in flight; finish_step gives their results");
    begin_step(batch);
    return finish_step();
  }
  const Pass pass = begin_pass(batch);
  const Tensor& outputs = forward(batch.input(), pass);
  const Tensor& gradient = loss_.forward_backward(outputs, batch.target(), pass);
  backward(gradient, pass);
  if (node_update_ && options_.clip_norm == 0 && !options_.check_gradients) return reduce_and_apply(pass);
  const StepControl& total = reduce(pass);
  return apply(total, pass);
}

void MirroredStrategy::begin_step(const Batch& batch) {
  if (device_) return begin_on_device(batch);
  if (computed_) throw LogicError("a step was begun with one in flight; finish it before");
  computed_ = train_step(batch);
}

StepResult MirroredStrategy::finish_step() {
  if (device_) {
    times_ = {};
    return result_on_device(device_->finish());
  }
  if (!computed_) throw LogicError("a step was finished and none is in flight");
  return *std::exchange(computed_, std::nullopt);
}

void MirroredStrategy::accumulate(const Batch& batch) {
  const FlushDenormals flushing = arithmetic();
  if (device_) return accumulate_on_device(batch);
  const Pass pass = begin_pass(batch);
  const Tensor& outputs = forward(batch.input(), pass);
  backward(loss_.forward_backward(outputs, batch.target(), pass), pass);
  ++micro_batch_;
}

/// Of a batch with fewer rows than planned, layers would read what is not there; with more, only the first would count.
void MirroredStrategy::check(const Batch& batch) const {
  if (batch.source() != nullptr && !keeps(*batch.source()))
    throw LogicError("a batch that names its samples was given to a strategy that does not keep them; see keeps");
  const TensorDesc& found = batch.input().desc();
  if (found == input_) return;
  throw InputError("the model was planned for inputs " + input_.text() + ", the batch has " + found.text() +
                   (found.shape.without_batch() == input_.shape.without_batch()
                        ? "; BatchPlan::with_capacity gives smaller batches the rows that were planned"
                        : ""));
}

Pass MirroredStrategy::begin_pass(const Batch& batch) {
  check(batch);
  last_lap_ = steady_seconds();
  if (micro_batch_ == 0) {
    times_ = {};
    communicator_.set_step(updates_ + 1);
    control_->clear(raised_);
  }
  if (is_last_micro_batch()) gradients_->begin();
  return pass_on(batch);
}

Pass MirroredStrategy::pass_on(const Batch& batch) {
  const std::uint64_t step = updates_ + steps_in_flight() + 1;
  return {.stream = *compute_.stream,
          .mode = Mode::training,
          .step = step,
          .key = RngKey(options_.seed, Purpose::layer, step),
          .weights = &batch.weights(),
          .loss_scale = loss_scale_,
          .more_scale = reinterpret_cast<const float*>(scale_.data()),
          .control = control_->there(),
          .on_ready = {}};
}

const Tensor& MirroredStrategy::outputs_of(const Tensor& input, const Pass& pass) {
  return model_.forward(cast_ ? cast_->forward(input, pass) : input, pass);
}

const Tensor& MirroredStrategy::forward(const Tensor& input, const Pass& pass) {
  const FlushDenormals flushing = arithmetic();
  const Tensor& outputs = outputs_of(input, pass);
  lap(&StepTimes::forward);
  return outputs;
}

void MirroredStrategy::backward(const Tensor& output_gradient, const Pass& pass) {
  const FlushDenormals flushing = arithmetic();
  model_.backward(output_gradient, reporting(pass));
  lap(&StepTimes::backward);
}

Pass MirroredStrategy::reporting(const Pass& pass) {
  if (!accumulator_) return pass.reporting(*gradients_);
  accumulator_->begin(micro_batch_ == 0, is_last_micro_batch() ? gradients_.get() : nullptr);
  return pass.reporting(*accumulator_);
}

const StepControl& MirroredStrategy::reduce(const Pass& pass) {
  const FlushDenormals flushing = arithmetic();
  gradients_->wait(pass.stream);
  const StepControl& total = control_->read();
  communicator_.require_devices();
  micro_batch_ = 0;
  lap(&StepTimes::communication);
  return total;
}

StepResult MirroredStrategy::apply(const StepControl& total, const Pass& pass) {
  const FlushDenormals flushing = arithmetic();
  if (device_) return result_on_device(device_->update(*control_));
  return update(total, pass, NodeUpdate::Gradients::summed);
}

/// reduce and apply in one go, to the same bits: each rank sums the gradients of its part while it updates it. Clipping
/// and looking for numbers that are not finite must know all sums first.
StepResult MirroredStrategy::reduce_and_apply(const Pass& pass) {
  gradients_->wait_for_control(pass.stream);
  const StepControl& total = control_->read();
  micro_batch_ = 0;
  lap(&StepTimes::communication);
  return update(total, pass, NodeUpdate::Gradients::own);
}

StepResult MirroredStrategy::update(const StepControl& total, const Pass& pass, NodeUpdate::Gradients gradients) {
  StepResult result = result_of(total);
  const std::span sums(reinterpret_cast<const float*>(gradient_arena_.data()), arena_bytes_ / sizeof(float));
  // All ranks have the same sums, to the bit, and so find the same without a message.
  result.nonfinite = !std::isfinite(total.loss) || (options_.check_gradients && !all_finite(options_.threads, sums));
  if (total.weight > 0 && !result.nonfinite) {
    const ArenaRange arena{reinterpret_cast<float*>(values_.data()),
                           reinterpret_cast<const float*>(gradient_arena_.data()), arena_bytes_ / sizeof(float)};
    double factor = 1 / (total.weight * loss_scale_);
    if (options_.clip_norm > 0) {
      result.gradient_norm = std::sqrt(optimizer_->squared_norm(arena, pass.stream)) * factor;
      factor *= clip_factor(result.gradient_norm, options_.clip_norm);
    }
    const StepScalars scalars{result.learning_rate, factor, updates_ + 1};
    result.spoiled =
        node_update_ ? !node_update_->run(gradients, scalars) : !optimizer_->step(arena, scalars, pass.stream);
    ++updates_;
  }
  lap(&StepTimes::optimizer);
  result.times = times_;
  return result;
}

/// What the sums say of a step, before the update.
StepResult MirroredStrategy::result_of(const StepControl& total) const {
  StepResult result;
  result.weight = total.weight;
  result.learning_rate = schedule_.rate(updates_);
  result.flags = total.flags;
  result.stop = total.flags.stop > 0;
  if (total.weight > 0) {  // otherwise there is nothing to learn from: no update
    result.loss = total.loss / total.weight;
    result.accuracy = total.correct / total.weight;
  }
  return result;
}

/// The same step, and the same bits, as train_step's parts by hand; after the first two a replay.
void MirroredStrategy::begin_on_device(const Batch& batch) {
  check(batch);
  if (steps_in_flight() == 0) last_lap_ = steady_seconds();
  communicator_.set_step(updates_ + steps_in_flight() + 1);
  device_->begin(batch, *control_, raised_, [this] { pass_on_device(); });
  micro_batch_ = 0;
}

void MirroredStrategy::accumulate_on_device(const Batch& batch) {
  check(batch);
  if (micro_batch_ == 0) last_lap_ = steady_seconds();
  device_->accumulate(batch, *control_, raised_, [this] { pass_on_device(); });
  ++micro_batch_;
}

/// What a step gives the device between its batch and the update; or a micro-batch before the last.
void MirroredStrategy::pass_on_device() {
  const Batch& batch = device_->placed();
  if (is_last_micro_batch()) gradients_->begin();
  const Pass pass = pass_on(batch);
  const Tensor& outputs = outputs_of(batch.input(), pass);
  model_.backward(loss_.forward_backward(outputs, batch.target(), pass), reporting(pass));
  if (is_last_micro_batch()) gradients_->wait(pass.stream);
}

/// What `update` finds, as the device found it.
StepResult MirroredStrategy::result_on_device(const DeviceStep::Result& found) {
  StepResult result = result_of(found.total);
  result.nonfinite = found.outcome.finite == 0;
  result.spoiled = found.outcome.spoiled != 0;
  result.overflow = found.outcome.overflowed != 0;
  result.loss_scale = found.outcome.loss_scale;
  result.gradient_norm = found.outcome.gradient_norm;
  updates_ = found.outcome.updates;
  lap(&StepTimes::optimizer);
  result.times = times_;
  return result;
}

void MirroredStrategy::lap(double StepTimes::*phase) noexcept {
  const double time = steady_seconds();
  times_.*phase += time - last_lap_;
  last_lap_ = time;
}

/// The name of the first, in the order of backward; empty where there is none. All ranks have the same.
std::string MirroredStrategy::clear_nonfinite_parameters() {
  std::string first;
  for (const auto& slot : slots_) {
    const Parameter& parameter = parameters_[index_of(slot.id)];
    const Tensor found = shown(parameter.trained());
    if (all_finite(1, found.as<float>())) continue;
    if (first.empty()) first = slot.name;
    const Tensor read = shown(parameter.value);  // by layers
    std::fill_n(read.data(), read.desc().bytes(), std::byte{0});
    if (device_) compute_.context->copy(read.data(), parameter.value.data(), read.desc().bytes(), *compute_.stream);
  }
  return first;
}

std::string MirroredStrategy::explain_nonfinite(const Batch& given) {
  const FlushDenormals flushing = arithmetic();
  const Batch& batch = place(given);
  const std::string lost = clear_nonfinite_parameters();
  evaluation_->clear();
  Pass pass = pass_on(batch);  // nobody hears of a gradient, so nothing is sent
  pass.control = evaluation_->there();
  const Tensor& outputs = outputs_of(batch.input(), pass);
  model_.backward(loss_.forward_backward(outputs, batch.target(), pass), pass);
  std::string mine = std::isfinite(evaluation_->read().loss) ? "" : "the loss";
  for (const auto& slot : slots_) {  // in the order in which backward came to them
    const Tensor gradient = shown(parameters_[index_of(slot.id)].gradient);
    if (all_finite(1, floats_of(gradient))) continue;
    mine += (mine.empty() ? "" : " and ") + std::string("the gradient of ") + slot.name;
    break;
  }
  const auto all = communicator_.gather_texts(mine);
  std::string text;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (!all[rank].empty())
      text += (text.empty() ? "" : "; ") + std::string("on rank ") + std::to_string(rank) + " on " +
              communicator_.topology().hosts[rank] + " " + all[rank];
  if (text.empty())
    text = "each rank's own are finite: their sum or the update is not, or those of an earlier micro-batch were not";
  return lost.empty() ? text : lost + " after the update; " + text;
}

// ---- evaluation -----------------------------------------------------------------------------------------------------

Evaluation MirroredStrategy::evaluate(BatchLoader& loader, const SeeOutputs& see) {
  const FlushDenormals flushing = arithmetic();
  const std::size_t batches = loader.plan().steps_per_epoch() * loader.plan().micro_batches();
  average_states();
  evaluation_->clear();
  for (std::size_t i = 0; i < batches; ++i) {
    const Batch& given = loader.next();
    check(given);
    const Batch& batch = place(given);
    const Pass pass{.stream = *compute_.stream,
                    .mode = Mode::evaluation,
                    .step = updates_,
                    .key = RngKey(options_.seed, Purpose::layer, updates_),
                    .weights = &batch.weights(),
                    .control = evaluation_->there(),
                    .on_ready = {}};
    const Tensor& outputs = outputs_of(batch.input(), pass);
    loss_.forward(outputs, batch.target(), pass);
    if (see) show(see, given, shown(outputs));
  }
  StepControl sums = evaluation_->read();
  communicator_.allreduce(Tensor(std::span(&sums.loss, StepControl::count)));
  if (sums.weight == 0) return {};
  return {sums.loss / sums.weight, sums.correct / sums.weight};
}

}  // namespace ronda
