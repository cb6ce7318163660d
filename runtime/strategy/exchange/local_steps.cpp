#include <ronda/core/counted.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/denormals.hpp>
#include <ronda/core/finite.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/runtime/strategy/exchange/local_steps.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

// Places in StepControl::reserved, for counts of ranks.
constexpr std::size_t nonfinite_place = 0, spoiled_place = 1;
constexpr std::size_t elements_per_line = 16;  ///< floats

RONDA_MULTIVERSION void subtract(const float* __restrict last, const float* __restrict values,
                                 float* __restrict changes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) changes[i] = last[i] - values[i];
}

RONDA_MULTIVERSION void take_mean(const float* __restrict last, const float* __restrict changes,
                                  float* __restrict values, float ranks, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = last[i] - changes[i] / ranks;
}

RONDA_MULTIVERSION void take_step(const float* __restrict last, const float* __restrict changes,
                                  float* __restrict momentum, float* __restrict values, float ranks,
                                  LocalSteps::Nesterov by, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float mean = changes[i] / ranks;
    momentum[i] = by.momentum * momentum[i] + mean;
    values[i] = last[i] - by.rate * (mean + by.momentum * momentum[i]);
  }
}

FusionOptions options_of_changes(FusionOptions options, Compression compression) {
  options.compression = compression;
  options.label = "change";
  options.late = true;
  options.dtype = DType::float32;
  return options;
}

[[noreturn]] void refuse_local_steps(const std::string& why, const std::string& remedy) {
  throw InputError(why + ", which .strategy = local_sgd has not; take .strategy = mirrored" + remedy);
}

}  // namespace

void require_local_steps(const Replica& replica) {
  const ReplicaPlan& plan = replica.plan();
  if (replica.device().context->device().kind != DeviceKind::cpu)
    refuse_local_steps("a GPU needs an exchange that goes on without the host", ", or .device = cpu");
  if (!plan.tables().empty())
    refuse_local_steps(
        "the sparse gradient of " + plan.tables().front().name + " needs an exchange of rows in each step",
        ", or an embedding with .sparse = false");
  if (plan.mixed())
    refuse_local_steps(
        "layers of " + std::string(name_of(plan.dtype)) + " need their parameters rounded after each exchange",
        ", or .precision = float32");
  if (!replica.program().rank_sums().empty())
    refuse_local_steps("a SyncBatchNorm needs sums over the ranks in each step", ", or a BatchNorm");
}

LocalSteps::LocalSteps(Communicator communicator, const std::vector<GradientSlot>& slots, const Replica& replica,
                       const LocalSgdOptions& local, FusionOptions options)
    : communicator_(std::move(communicator)),
      replica_(replica),
      local_options_(local),
      by_{static_cast<float>(local.rate()), static_cast<float>(local.momentum())},
      slots_(slots),
      arena_(replica.dense_arena()),
      changes_memory_(communicator_.allocate(replica.plan().arena_bytes, Memory::node_shared)),
      deltas_(communicator_, slots, changes_memory_, options_of_changes(options, local.delta_compression)) {
  agree(communicator_, [&] {
    last_memory_ = Buffer::host(arena_.count * sizeof(float));
    if (local_options_.outer_optimizer == OuterOptimizer::nesterov)
      momentum_memory_ = Buffer::host(arena_.count * sizeof(float));
  });
  if (local_options_.local_after > 0)
    mirrored_ = std::make_unique<BucketedAllreduce>(communicator_, slots, replica.reduced(), arena_, options);
}

// ---- a step ---------------------------------------------------------------------------------------------------------

void LocalSteps::begin() {
  local_ = updates_ >= local_options_.local_after;
  shown_ = false;
  if (!local_) return mirrored_->begin();
  if (steps_ == 0) std::copy_n(values(), arena_.count, last());  // whoever wrote them
}

/// The sums are complete before the first gradient is.
void LocalSteps::mark_ready(ParameterId id, Stream& stream) {
  if (local_) return;
  if (!std::exchange(shown_, true)) mirrored_->sums() = sums();
  mirrored_->mark_ready(id, stream);
}

void LocalSteps::reduce(Sums wanted, Stream& stream) {
  if (local_) return;
  if (!shown_) mirrored_->sums() = sums();
  mirrored_->reduce(wanted, stream);
  sums() = mirrored_->sums();
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
  count(*outcome);
  ++steps_;
  average_differs_ = states_differ_ = true;
  if (asked || steps_ == local_options_.synchronise_every) return agree_on_all(*outcome, stream);
  if (agreed_)
    sums() = {};
  else
    agree_on_sums(stream);
  agreed_ = true;
  outcome->finite = 1;  // the others do not know either
  outcome->spoiled = 0;
}

/// Adds the step to what the other ranks are to hear of.
void LocalSteps::count(const UpdateOutcome& outcome) {
  const StepControl& step = sums();
  StepFlags& flags = own_.sums.flags;
  flags = {.stop = std::max(flags.stop, step.flags.stop),
           .leave = std::max(flags.leave, step.flags.leave),
           .save = std::max(flags.save, step.flags.save),
           .written = step.flags.written,
           .unwritten = step.flags.unwritten};
  if (outcome.finite != 0) {
    own_.sums.loss += step.loss;
    own_.sums.weight += step.weight;
    own_.sums.metric += step.metric;
  }
  const bool bad = outcome.finite == 0 || outcome.spoiled != 0;
  if (bad && own_.bad_steps++ == 0) own_.first_bad = updates_;
  own_.nonfinite = own_.nonfinite || outcome.finite == 0;
  own_.spoiled = own_.spoiled || outcome.spoiled != 0;
}

void LocalSteps::agree_on_sums(Stream& stream) {
  sums() = std::exchange(own_.sums, {});
  mark_all(stream);
  deltas_.wait_for_control(stream);
}

void LocalSteps::agree_on_all(UpdateOutcome& outcome, Stream& stream) {
  told_ = std::exchange(own_, {});
  agreed_ = true;
  StepControl& all = sums();
  all = told_.sums;
  all.reserved[nonfinite_place] = told_.nonfinite ? 1 : 0;
  all.reserved[spoiled_place] = told_.spoiled ? 1 : 0;
  synchronise(stream);
  outcome.finite = all.reserved[nonfinite_place] == 0 ? 1 : 0;
  outcome.spoiled = all.reserved[spoiled_place] != 0 || !all_finite(stream.threads(), {values(), arena_.count}) ? 1 : 0;
}

void LocalSteps::mark_all(Stream& stream) {
  deltas_.begin();
  for (const GradientSlot& slot : slots_) deltas_.mark_ready(slot.id, stream);
}

void LocalSteps::synchronise(Stream& stream) {
  const auto by_parts = [&](auto&& work) {
    parallel_for(
        stream.threads(), arena_.count,
        [&](Range part) {
          const DenormalScope flushing(true);
          work(part.begin, part.size());
        },
        elements_per_line);
  };
  by_parts([&](std::size_t at, std::size_t count) { subtract(last() + at, values() + at, changes() + at, count); });
  mark_all(stream);
  deltas_.wait(stream);
  const auto ranks = static_cast<float>(communicator_.size());
  if (local_options_.outer_optimizer == OuterOptimizer::average)
    by_parts([&](std::size_t at, std::size_t count) {
      take_mean(last() + at, changes() + at, values() + at, ranks, count);
    });
  else
    by_parts([&](std::size_t at, std::size_t count) {
      take_step(last() + at, changes() + at, momentum() + at, values() + at, ranks, by_, count);
    });
  steps_ = 0;
  ++synchronisations_;
}

// ---- between steps --------------------------------------------------------------------------------------------------

void LocalSteps::settle(Stream& stream) {
  if (steps_ > 0) {
    const StepControl kept = std::exchange(sums(), {});
    synchronise(stream);
    sums() = kept;
  }
  const Buffer& average = replica_.average();
  if (average.bytes() > 0 && std::exchange(average_differs_, false))
    communicator_.allreduce(Tensor(std::span(reinterpret_cast<float*>(average.data()), arena_.count)), ReduceOp::mean);
}

void LocalSteps::set_updates(std::uint64_t updates) {
  updates_ = updates;
  steps_ = 0;
  own_ = {};
  average_differs_ = states_differ_ = false;
}

void LocalSteps::gather(std::span<float* const> states) {
  if (!std::exchange(states_differ_, false)) return;
  for (float* state : states) communicator_.allreduce(Tensor(std::span(state, arena_.count)), ReduceOp::mean);
}

/// The momentum is the same on all ranks; as an averaged state it is dropped, with a note, by a training that has none.
void LocalSteps::visit(StateVisitor& visitor) {
  if (momentum_memory_.bytes() > 0)
    for (const GradientSlot& slot : slots_) {
      const Parameter& parameter = replica_.parameters()[index_of(slot.id)];
      visitor.visit({parameter.name + ".outer_momentum",
                     {parameter.trained().desc(), momentum_memory_.data() + slot.offset},
                     Scope::averaged,
                     parameter.flattened});
    }
  deltas_.visit(visitor);
  if (mirrored_) mirrored_->visit(visitor);
}

std::string LocalSteps::explain_nonfinite() {
  std::string mine;
  if (told_.bad_steps > 0)
    mine = std::to_string(told_.bad_steps) + " of its steps, the first of them step " +
           std::to_string(told_.first_bad) + ", " +
           (told_.spoiled ? "left parameters that are not finite"
                          : "had a loss or a gradient that is not finite, and changed nothing");
  const auto all = communicator_.gather_texts(mine);
  std::string text;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (!all[rank].empty())
      text += (text.empty() ? "since the last synchronisation, on rank " : "; on rank ") + std::to_string(rank) +
              " on " + communicator_.topology().hosts[rank] + ", " + all[rank];
  return text;
}

// ---- reports --------------------------------------------------------------------------------------------------------

std::vector<std::string> LocalSteps::describe() const {
  std::vector<std::string> lines;
  if (mirrored_) lines = mirrored_->describe();
  for (auto& line : deltas_.describe()) lines.push_back(std::move(line));
  lines.push_back("local steps, synchronised every " + std::to_string(local_options_.synchronise_every) + " by " +
                  std::string(name_of(local_options_.outer_optimizer)));
  return lines;
}

std::vector<std::string> LocalSteps::report() const {
  std::vector<std::string> lines;
  if (mirrored_) lines = mirrored_->report();
  for (auto& line : deltas_.report()) lines.push_back(std::move(line));
  const SynchronisationCosts costs = synchronisations();
  lines.push_back(std::to_string(costs.count) + " synchronisations sent " + human_bytes(costs.sent_bytes) +
                  " in messages; this rank waited " + std::to_string(costs.waited_seconds) + " s for them");
  return lines;
}

double LocalSteps::exposed_seconds() const noexcept {
  return deltas_.exposed_seconds() + (mirrored_ ? mirrored_->exposed_seconds() : 0);
}

std::size_t LocalSteps::memory() const noexcept {
  return deltas_.memory() + changes_memory_.bytes() + last_memory_.bytes() + momentum_memory_.bytes() +
         (mirrored_ ? mirrored_->memory() : 0);
}

SynchronisationCosts LocalSteps::synchronisations() const noexcept {
  return {synchronisations_, deltas_.sent_bytes(), deltas_.exposed_seconds()};
}

}  // namespace ronda
