#include <ronda/collectives/phase.hpp>
#include <ronda/core/clock.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/layers/loss.hpp>
#include <ronda/runtime/trainer/sample_search.hpp>
#include <ronda/runtime/trainer/training_run.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace ronda {
namespace {

BatchPlan plan_of_test(const Strategy& strategy, const Dataset& test) {
  const std::size_t rows = strategy.batch_capacity();
  return BatchPlan(test.size(), rows * strategy.test_shard().count, strategy.test_shard()).with_capacity(rows);
}

void set_test(EpochReport& epoch, const Evaluation& evaluation) {
  epoch.test_loss = evaluation.loss;
  epoch.test_metric = evaluation.metric;
  epoch.test_metrics = evaluation.metrics;
  epoch.evaluated = true;
}

/// Of epochs that are over numbers alone are kept: matrices may be large, and nobody asks for them any more.
void drop_matrices(EpochReport& epoch) {
  for (auto* metrics : {&epoch.test_metrics, &epoch.validation_metrics})
    std::erase_if(*metrics, [](const MetricValue& value) { return !value.is_number(); });
}

}  // namespace

TrainingRun::TrainingRun(const Parts& parts)
    : parts_(parts),
      loader_(
          parts.train, train_order(),
          training_plan(options(), parts.strategy.shard(), parts.train).with_capacity(parts.strategy.batch_capacity()),
          loading(parts.train, true)),
      validation_loader_(test_loader(parts.validation)),
      test_loader_(test_loader(parts.test)) {}

std::unique_ptr<BatchLoader> TrainingRun::test_loader(const Dataset& data) const {
  if (data.size() == 0) return nullptr;
  const BatchPlan plan = plan_of_test(parts_.strategy, data);
  return std::make_unique<BatchLoader>(data, SampleOrder(data.size(), 0, false), plan, loading(data, false));
}

SampleOrder TrainingRun::train_order() const { return {parts_.train.size(), options().seed, options().shuffle}; }

TrainingRun::~TrainingRun() {
  parts_.strategy.drain();  // steps in flight may read the loader's batches
  parts_.strategy.raise({});
}

/// Injected faults are of values. Where a GPU computes, reading ahead needs no core of its own.
LoaderOptions TrainingRun::loading(const Dataset& data, bool in_steps) const {
  LoaderOptions loading{.prefetch = setup().prefetch, .varies = in_steps};
  const Strategy& strategy = parts_.strategy;
  DeviceContext& device = *strategy.device().context;
  const auto* servers = options().strategy.as<ParameterServer>();
  if (in_steps && servers != nullptr && servers->asynchronous)
    loading.prefetch = false;  // which batch is next is known late
  if (device.device().kind == DeviceKind::cpu) return loading;
  if (strategy.keeps(data) && options().faults.empty()) loading.contents = BatchContents::samples;
  loading.prefetch = loading.contents == BatchContents::values && parts_.world.cores() > 1;
  if (!in_steps) return loading;
  loading.kept = strategy.max_in_flight() * options().accumulate;
  loading.staging = &device;
  return loading;
}

void TrainingRun::train() {
  TrainingProgress& progress = parts_.progress;
  progress.current.epoch = progress.history.size() + 1;
  for (Hook* hook : parts_.hooks) hook->on_start(*this);
  while ((progress.step < setup().total_steps || progress.batches.taken() > 0) && !stopped_) {
    progress.current.epoch = progress.history.size() + 1;
    progress.current.epochs = setup().epochs;
    train_epoch();
    if (left_) break;
    test_epoch();
    end_epoch();
  }
  deal({});  // the strategy may be for another fit
  for (Hook* hook : parts_.hooks) hook->on_end(*this);
}

void TrainingRun::train_epoch() {
  TrainingProgress& progress = parts_.progress;
  order_ = progress.batches;
  tells_ = progress.weight > 0 || progress.batches.taken() > 0;
  for (;;) {
    if (may_begin())
      begin_step();
    else if (!settled())
      end_step();
    else
      break;
  }
  if (!tells_ && !stopped_)
    throw InputError("no sample of epoch " + std::to_string(progress.current.epoch) +
                     " counts: all have the weight 0, as those that are damaged, and whose label is ignored or of a "
                     "class with weight 0");
  progress.current.train_loss /= progress.weight;  // not a number where no step of it was finite
  progress.current.train_metric /= progress.weight;
}

/// Whether a step is to begin now; otherwise the oldest in flight is to be finished, or all is done.
bool TrainingRun::may_begin() const {
  const std::size_t begun = in_flight_.size();
  if (stopped_ || begun == parts_.strategy.max_in_flight() ||
      progress().batches.taken() + begun == loader_.plan().steps_per_epoch() || step() + begun == setup().total_steps)
    return false;
  return begun == 0 ||
         std::ranges::none_of(parts_.hooks, [&](const Hook* hook) { return hook->settles_after(step() + begun); });
}

/// After the step that begins next: somebody else than steps reads them, or an epoch's sums are complete.
bool TrainingRun::needs_equal_replicas() const {
  const std::size_t next = in_flight_.size() + 1;
  return progress().batches.taken() + next == loader_.plan().steps_per_epoch() ||
         step() + next == setup().total_steps ||
         std::ranges::any_of(parts_.hooks, [&](const Hook* hook) { return hook->needs_replicas_after(step() + next); });
}

void TrainingRun::begin_step() {
  Begun step{.batch = nullptr, .start = steady_seconds(), .data = 0, .place = {}};
  Strategy& strategy = parts_.strategy;
  const std::size_t place = static_cast<std::size_t>(progress().batches.taken()) + in_flight_.size();
  const auto samples = strategy.samples_for(place, loader_.plan().steps_per_epoch());  // a number in `order_`
  if (samples) {
    step.place = order_.batch(*samples);
    seek(progress().current.epoch, *step.place);
  }
  StepFlags flags{.stop = parts_.asked_to_stop ? 1.0 : strategy.raised().stop};
  for (Hook* hook : parts_.hooks) hook->before_step(*this, flags);
  strategy.raise(flags);
  if (needs_equal_replicas()) strategy.synchronise_next();
  try {
    compute_step(step);
  } catch (const LabelError& error) {
    const std::string sample =
        step.place ? find_sample(parts_.train, train_order(), loader_.plan(),
                                 {.epoch = progress().current.epoch, .step = *step.place}, has_label(error.label()))
                   : "";
    throw InputError((sample.empty() ? "" : sample + " of the training data: ") + error.message());
  }
  in_flight_.push_back(step);
}

void TrainingRun::compute_step(Begun& step) {
  const bool computes = step.place.has_value() || newest_batch_ == nullptr;
  const auto next = [&]() -> const Batch& {
    if (!computes) return *newest_batch_;  // nobody looks at it
    const double asked = steady_seconds();
    newest_batch_ = &read_next();
    step.data += steady_seconds() - asked;
    return *newest_batch_;
  };
  for (std::size_t micro = 0; micro + 1 < loader_.plan().micro_batches(); ++micro) parts_.strategy.accumulate(next());
  const Batch& batch = next();
  if (step.place)
    for (Hook* hook : parts_.hooks) hook->before_batch(*this, batch);
  parts_.strategy.begin_step(batch);
  step.batch = &batch;
}

/// Allows more time, because other ranks may wait for a batch that takes long to read.
const Batch& TrainingRun::read_next() {
  const Phase phase(parts_.world.communicator(), Activity::reading);
  return loader_.next();
}

void TrainingRun::seek(std::uint64_t epoch, std::uint64_t batch) {
  loader_.seek(epoch, static_cast<std::size_t>(batch));
}

void TrainingRun::end_step() {
  const StepReport report = finish_step();
  for (Hook* hook : parts_.hooks) hook->after_step(*this, report);
}

StepReport TrainingRun::finish_step() {
  const Begun begun = in_flight_.front();
  last_step_ = parts_.strategy.finish_step();
  if (last_step_.weight == 0) last_step_.loss = last_step_.metric = StepReport::unknown;
  last_step_.times.data = begun.data;
  last_batch_ = begun.batch;
  last_place_ = begun.place;
  last_epoch_ = parts_.progress.current.epoch;
  in_flight_.erase(in_flight_.begin());
  TrainingProgress& progress = parts_.progress;
  const std::uint64_t batch = order_.batch(last_step_.samples_of.value_or(progress.batches.taken()));
  ++progress.step;
  progress.batches.take(batch);
  if (last_step_.settled) order_ = progress.batches;
  if (last_step_.weight != 0) progress.last_loss = last_step_.loss;
  left_ = (left_ || last_step_.flags.leave > 0) && progress.step < setup().total_steps;
  stopped_ = stopped_ || last_step_.stop || left_;
  const double start = std::max(begun.start, last_end_);  // what steps have in common counts once
  last_end_ = steady_seconds();
  EpochReport& epoch = progress.current;
  const StepReport report{.step = progress.step,
                          .epoch = epoch.epoch,
                          .step_in_epoch = progress.batches.taken(),
                          .steps_in_epoch = loader_.plan().steps_per_epoch(),
                          .loss = last_step_.loss,
                          .metric = last_step_.metric,
                          .learning_rate = last_step_.learning_rate,
                          .samples = loader_.plan().samples(static_cast<std::size_t>(batch)),
                          .seconds = last_end_ - start,
                          .times = last_step_.times};
  epoch.seconds += report.seconds;
  epoch.samples += report.samples;
  epoch.times += last_step_.times;
  tells_ = tells_ || last_step_.weight != 0 || last_step_.nonfinite || last_step_.spoiled;
  const bool finite = (!last_step_.nonfinite && !last_step_.spoiled) || last_step_.of_finite;
  if (!finite || last_step_.weight == 0) return report;
  progress.weight += last_step_.weight;
  epoch.train_loss += last_step_.loss * last_step_.weight;
  epoch.train_metric += last_step_.metric * last_step_.weight;
  return report;
}

void TrainingRun::test_epoch() {
  BatchLoader* const loader = validation_loader_ ? validation_loader_.get() : test_loader_.get();
  if (loader == nullptr) return parts_.strategy.state().average_states();  // an epoch ends alike, tested or not
  const double start = steady_seconds();
  const Evaluation evaluation = test(*loader);
  slowest_test_ = std::max(slowest_test_, steady_seconds() - start);
  EpochReport& epoch = parts_.progress.current;
  warn_of_loss(evaluation, tested_with(), epoch.epoch);
  if (validates()) {
    epoch.validation_loss = evaluation.loss;
    epoch.validation_metric = evaluation.metric;
    epoch.validation_metrics = evaluation.metrics;
    epoch.validated = true;
  } else {
    set_test(epoch, evaluation);
  }
  for (Hook* hook : parts_.hooks) hook->after_test(*this, evaluation);
}

void TrainingRun::test_in_the_end() {
  if (!validates() || !test_loader_ || progress().history.empty()) return;
  const Evaluation evaluation = test(*test_loader_);
  warn_of_loss(evaluation, "test", parts_.progress.history.back().epoch);
  set_test(parts_.progress.history.back(), evaluation);
}

void TrainingRun::warn_of_loss(const Evaluation& evaluation, const std::string& data, std::uint64_t epoch) {
  if (std::isfinite(evaluation.loss)) return;
  const bool is_watched = options().early_stopping > 0 || options().keep_best || options().reduce_rate_after > 0;
  sink().on_warning("the " + data + " loss of epoch " + std::to_string(epoch) + " is not finite, but " +
                    shortest(evaluation.loss) + ": look for samples that are far from the training data's" +
                    (is_watched ? "; it counts as no improvement" : ""));
}

Evaluation TrainingRun::evaluate(const SeeOutputs& see) {
  if (!test_loader_) throw LogicError("there is no test data");
  return evaluate(*test_loader_, see, {});
}

Evaluation TrainingRun::test(BatchLoader& loader) { return evaluate(loader, {}, parts_.metrics); }

Evaluation TrainingRun::evaluate(BatchLoader& loader, const SeeOutputs& see, const Metrics& metrics) {
  const Phase phase(parts_.world.communicator(), Activity::evaluating);
  loader.seek(1);
  try {
    return parts_.strategy.evaluate(loader, see, metrics);
  } catch (const LabelError& error) {
    const bool validation = &loader == validation_loader_.get();
    const Dataset& data = validation ? parts_.validation : parts_.test;
    const std::string sample = find_sample(data, SampleOrder(data.size(), 0, false), loader.plan(),
                                           {.steps = loader.plan().steps_per_epoch()}, has_label(error.label()));
    throw InputError((sample.empty() ? "" : sample + " of the " + (validation ? "validation" : "test") + " data: ") +
                     error.message());
  }
}

std::string TrainingRun::nonfinite_sample() const {
  if (!last_place_) return {};
  return find_sample(parts_.train, train_order(), loader_.plan(), {.epoch = last_epoch_, .step = *last_place_},
                     nonfinite_field(parts_.train.fields()));
}

std::span<const double> TrainingRun::kept_of(const std::string& name) const {
  const auto found = progress().hooks.find(name);
  return found == progress().hooks.end() ? std::span<const double>() : found->second;
}

/// Other hooks have to know: steps that are done once more would not have the same rate.
void TrainingRun::set_rate_factor(double factor) {
  if (factor == parts_.strategy.state().rate_factor()) return;
  parts_.strategy.state().set_rate_factor(factor);
  note_states_were_set();
}

void TrainingRun::deal(const Deal& deal) {
  if (deal == deal_) return;
  loader_.deal(deal);
  parts_.strategy.set_micro_batches(loader_.plan().micro_batches());
  deal_ = deal;
  note_states_were_set();
}

void TrainingRun::end_epoch() {
  TrainingProgress& progress = parts_.progress;
  const EpochReport report = std::exchange(progress.current, EpochReport());
  if (!progress.history.empty()) drop_matrices(progress.history.back());
  progress.history.push_back(report);
  progress.current.epoch = report.epoch + 1;
  progress.batches = {};
  progress.weight = 0;
  for (Hook* hook : parts_.hooks) hook->after_epoch(*this, report);
  if (!ending()) agree_to_stop();
}

/// What was asked for in an epoch's last hooks is agreed on before a step of the next one begins.
void TrainingRun::agree_to_stop() {
  std::int32_t asked = parts_.asked_to_stop || parts_.strategy.raised().stop > 0 ? 1 : 0;
  Communicator all = parts_.world.communicator();
  all.allreduce(Tensor(std::span(&asked, 1)), ReduceOp::maximum);
  stopped_ = asked > 0;
}

void TrainingRun::prepare_save(CheckpointManifest& manifest) {
  for (Hook* hook : parts_.hooks) hook->before_save(*this, manifest);
  parts_.strategy.state().gather_state();
}

void TrainingRun::summarize(Summary& summary) const {
  for (const Hook* hook : parts_.hooks) hook->summarize(summary);
}

void TrainingRun::repeat_since(const TrainingPosition& from) {
  Strategy& strategy = parts_.strategy;
  strategy.state().set_updates(from.updates);
  const double rate_factor = strategy.state().rate_factor();
  strategy.state().set_rate_factor(from.rate_factor);
  strategy.state().set_keeps_zeros(from.keeps_zeros);
  const StepFlags raised = strategy.raised();  // a hook may have asked to stop just now
  strategy.raise({});
  const Deal present = deal_;
  deal(from.deal);
  std::uint64_t epoch = from.epoch;
  EpochBatches batches = from.batches;
  for (std::uint64_t step = from.step; step < progress().step; ++step) {
    if (batches.taken() == loader_.plan().steps_per_epoch()) {
      strategy.state().average_states();  // as at every epoch's end
      batches = {};
      ++epoch;
    }
    const std::uint64_t batch = batches.batch(batches.taken());
    seek(epoch, batch);
    batches.take(batch);
    for (std::size_t micro = 0; micro + 1 < loader_.plan().micro_batches(); ++micro) strategy.accumulate(read_next());
    static_cast<void>(strategy.train_step(read_next()));
  }
  const bool epoch_is_over = progress().current.epoch > from.epoch && progress().batches.taken() == 0;
  if (epoch_is_over && batches.taken() > 0) strategy.state().average_states();
  deal(present);
  strategy.state().set_rate_factor(rate_factor);
  strategy.raise(raised);
  for (Hook* hook : parts_.hooks) hook->after_repeat(*this);
  strategy.state().gather_state();
}

std::uint64_t TrainingRun::samples() const noexcept { return statistics().samples() + progress().samples_before; }

double TrainingRun::train_seconds() const noexcept { return statistics().seconds() + progress().seconds_before; }

TrainingPosition TrainingRun::position() const noexcept {
  return {step(),
          progress().current.epoch,
          parts_.strategy.updates(),
          parts_.strategy.state().rate_factor(),
          parts_.strategy.state().keeps_zeros(),
          deal_,
          progress().batches};
}

Evaluation TrainingRun::result() const {
  if (result_) return *result_;
  const EpochReport& last = left_ || progress().history.empty() ? progress().current : progress().history.back();
  return {last.test_loss, last.test_metric, last.test_metrics};
}

}  // namespace ronda
