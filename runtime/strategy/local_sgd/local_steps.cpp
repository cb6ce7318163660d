#include <ronda/core/floats.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/strategy/exchange/local_replicas.hpp>
#include <ronda/runtime/strategy/local_sgd/local_steps.hpp>

#include <limits>
#include <utility>

namespace ronda {
namespace {

FusionOptions options_of_changes(FusionOptions options, Compression compression) {
  options.compression = compression;
  options.label = "change";
  options.late = true;
  options.dtype = DType::float32;
  return options;
}

/// Fragments synchronise all at once only on request.
constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

/// After such a step replicas are read, or there is no later one: nothing may be left to be told.
bool asks_for_all(const StepFlags& flags) noexcept { return flags.stop + flags.leave + flags.save > 0; }

}  // namespace

LocalSteps::LocalSteps(Communicator communicator, const std::vector<GradientSlot>& slots, const Replica& replica,
                       const LocalSgd& local, const FusionOptions& options)
    : communicator_(std::move(communicator)),
      replica_(replica),
      local_options_(local),
      slots_(slots),
      arena_(replica.dense_arena()),
      changes_memory_(communicator_.allocate(replica.plan().arena_bytes, Memory::node_shared)),
      deltas_(communicator_, slots, changes_memory_, options_of_changes(options, local.delta_compression)),
      leave_(communicator_) {
  agree(communicator_, [&] {
    outer_ = std::make_unique<OuterStep>(local, static_cast<std::size_t>(communicator_.size()), arena_.count);
  });
  if (local.fragments > 1)
    fragments_ = std::make_unique<Fragments>(communicator_, slots, changes_memory_, local,
                                             options_of_changes(options, local.delta_compression));
  if (local.local_after > 0)
    mirrored_ = std::make_unique<BucketedAllreduce>(communicator_, slots, replica.reduced(), arena_, options);
}

// ---- a step ---------------------------------------------------------------------------------------------------------

void LocalSteps::begin() {
  local_ = updates_ >= local_options_.local_after;
  shown_ = false;
  if (!local_) return mirrored_->begin();
  if (steps_ == 0) outer_->begin_with(values());  // whoever wrote them
}

/// The sums are complete before the first gradient is.
void LocalSteps::mark_ready(ParameterId id, Stream& stream) {
  if (local_) return poll();
  if (!std::exchange(shown_, true)) *mirrored_->traits().sums = sums();
  mirrored_->mark_ready(id, stream);
}

/// Lets messages in flight make progress.
void LocalSteps::poll() {
  leave_.poll();
  if (fragments_) fragments_->poll();
}

void LocalSteps::reduce(Sums wanted, Stream& stream) {
  if (local_) return;
  if (!shown_) *mirrored_->traits().sums = sums();
  mirrored_->reduce(wanted, stream);
  sums() = *mirrored_->traits().sums;
}

void LocalSteps::publish(UpdateOutcome* outcome, Stream& stream) {
  const bool asked = std::exchange(asked_, false);
  if (!local_) {
    updates_ = outcome->updates;
    agreed_ = true;
    return;
  }
  if (outcome->applied == 0) ++outcome->updates;  // all ranks count alike, and have one schedule
  updates_ = outcome->updates;
  const bool asks_to_leave = sums().flags.leave > 0;
  ledger_.own.count(sums(), *outcome, updates_);
  ++steps_;
  differs_ = {.average = true, .states = true};
  ledger_.sent = ledger_.late_own;
  const std::uint64_t period = local_options_.synchronise_every;
  const bool all = asked || leave_.after_step(asks_to_leave, steps_, fragments_ ? never : period);
  if (!all && fragments_) return publish_fragments(*outcome, stream);
  if (all || steps_ == period) return agree_on_all({}, *outcome, stream);
  tell_nothing(*outcome, stream);
}

/// The others do not know more either. But once, at the start, there is to be something to show.
void LocalSteps::tell_nothing(UpdateOutcome& outcome, Stream& stream) {
  sums() = {};
  if (!std::exchange(agreed_, true)) {
    sums() = std::exchange(ledger_.own.sums, {});
    mark_all(stream);
    deltas_.wait_for_control(stream);
  }
  outcome.finite = 1;
  outcome.spoiled = 0;
}

void LocalSteps::publish_fragments(UpdateOutcome& outcome, Stream& stream) {
  StepControl all;
  const bool any = fragments_->finish_due(steps_, ledger_.sent, all, *outer_, values(), stream);
  if (any && (asks_for_all(all.flags) || asks_for_all(ledger_.late.flags))) return agree_on_all(all, outcome, stream);
  if (any)
    tell(all, outcome, stream);
  else
    tell_nothing(outcome, stream);
  fragments_->start_due(steps_, ledger_.own, *outer_, values(), stream);
}

/// @param told_already  sums that other ranks have sent in this step
void LocalSteps::agree_on_all(const StepControl& told_already, UpdateOutcome& outcome, Stream& stream) {
  StepControl all = told_already;
  if (fragments_) fragments_->finish_all(ledger_.sent, all, *outer_, values(), stream);
  sums() = ledger_.own.told();
  ledger_.sent.add(std::exchange(ledger_.own, {}));
  synchronise(stream);
  forget_writing(all);  // it was told before
  add(all, sums());
  tell(all, outcome, stream);
}

void LocalSteps::tell(const StepControl& all, UpdateOutcome& outcome, Stream& stream) {
  agreed_ = true;
  sums() = all;
  add(sums(), std::exchange(ledger_.late, {}));
  ledger_.late_own = {};
  outcome.finite = tells_nonfinite(sums()) ? 0 : 1;
  outcome.spoiled = tells_spoiled(sums()) || !all_finite(stream.threads(), {values(), arena_.count}) ? 1 : 0;
}

void LocalSteps::mark_all(Stream& stream) {
  deltas_.begin();
  for (const GradientSlot& slot : slots_) deltas_.mark_ready(slot.id, stream);
}

void LocalSteps::synchronise(Stream& stream) {
  leave_.finish();
  const Range whole{0, arena_.count};
  outer_->measure(values(), changes(), whole, stream.threads());
  mark_all(stream);
  deltas_.wait(stream);
  outer_->apply(changes(), values(), whole, stream.threads());
  steps_ = 0;
  ++synchronisations_;
}

// ---- between steps --------------------------------------------------------------------------------------------------

void LocalSteps::settle(Stream& stream) {
  if (steps_ > 0) {
    const StepControl kept = std::exchange(sums(), {});
    if (fragments_) fragments_->finish_all(ledger_.late_own, ledger_.late, *outer_, values(), stream);
    forget_writing(ledger_.late);
    synchronise(stream);
    sums() = kept;
  }
  if (replica_.average().bytes() > 0 && std::exchange(differs_.average, false))
    take_mean_of_average(communicator_, replica_);
}

void LocalSteps::set_updates(std::uint64_t updates) {
  leave_.finish();
  if (fragments_) fragments_->drop_all(replica_.stream());
  updates_ = updates;
  agreed_ = updates > 0;  // the loss of the last step is known
  steps_ = 0;
  ledger_ = {};
  differs_ = {};
}

void LocalSteps::gather(std::span<float* const> states) {
  if (!std::exchange(differs_.states, false)) return;
  for (float* state : states) communicator_.allreduce(Tensor(std::span(state, arena_.count)), ReduceOp::mean);
}

/// The momentum is the same on all ranks; as an averaged state it is dropped, with a note, by a training that has none.
void LocalSteps::visit(StateVisitor& visitor) {
  if (std::byte* const momentum = outer_->momentum(); momentum != nullptr)
    for (const GradientSlot& slot : slots_) {
      const Parameter& parameter = replica_.parameters()[index_of(slot.id)];
      visitor.visit({parameter.name + ".outer_momentum",
                     {parameter.trained().desc(), momentum + slot.offset},
                     Scope::averaged,
                     parameter.flattened});
    }
  deltas_.visit(visitor);
  if (fragments_) fragments_->visit(visitor);
  if (mirrored_) mirrored_->visit(visitor);
}

std::string LocalSteps::explain_nonfinite() { return explain_own_steps(communicator_, ledger_.sent); }

// ---- reports --------------------------------------------------------------------------------------------------------

ExchangeReport LocalSteps::report() const {
  return {.plan = lines_of_plan(),
          .costs = lines_of_costs(),
          .memory = memory(),
          .buckets = deltas_.buckets(),
          .synchronisations = synchronisations()};
}

std::vector<std::string> LocalSteps::lines_of_plan() const {
  std::vector<std::string> lines;
  if (mirrored_) lines = mirrored_->report().plan;
  for (auto& line : deltas_.describe()) lines.push_back(std::move(line));
  if (fragments_)
    for (auto& line : fragments_->describe()) lines.push_back(std::move(line));
  lines.push_back("local steps, synchronised every " + std::to_string(local_options_.synchronise_every) + " by " +
                  std::string(name_of(local_options_.outer_optimizer)));
  return lines;
}

std::vector<std::string> LocalSteps::lines_of_costs() const {
  std::vector<std::string> lines;
  if (mirrored_) lines = mirrored_->report().costs;
  for (auto& line : deltas_.report()) lines.push_back(std::move(line));
  const SynchronisationCosts costs = synchronisations();
  lines.push_back(std::to_string(costs.count) + " synchronisations sent " + human_bytes(costs.sent_bytes) +
                  " in messages; this rank waited " + formatted("%.6f", costs.waited_seconds) + " s for them");
  return lines;
}

double LocalSteps::exposed_seconds() const noexcept {
  return deltas_.exposed_seconds() + (fragments_ ? fragments_->exposed_seconds() : 0) +
         (mirrored_ ? mirrored_->exposed_seconds() : 0);
}

std::size_t LocalSteps::memory() const {
  return deltas_.memory() + changes_memory_.bytes() + outer_->memory() + (fragments_ ? fragments_->memory() : 0) +
         (mirrored_ ? mirrored_->report().memory : 0);
}

SynchronisationCosts LocalSteps::synchronisations() const {
  SynchronisationCosts costs{synchronisations_, deltas_.sent_bytes(), deltas_.exposed_seconds(),
                             deltas_.exposed_seconds()};
  if (fragments_) fragments_->add_costs(costs);
  return costs;
}

}  // namespace ronda
