#include <ronda/core/denormals.hpp>
#include <ronda/core/floats.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/strategy/easgd/elastic_steps.hpp>
#include <ronda/runtime/strategy/exchange/local_replicas.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

FusionOptions options_of_differences(FusionOptions options) {
  options.compression = Compression::none;
  options.label = "difference";
  options.late = true;
  options.dtype = DType::float32;
  return options;
}

RONDA_MULTIVERSION void pull(float* __restrict values, const float* __restrict center, float* __restrict differences,
                             float rate, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    differences[i] = rate * (values[i] - center[i]);
    values[i] -= differences[i];
  }
}

RONDA_MULTIVERSION void move_center(const float* __restrict differences, float* __restrict center, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) center[i] += differences[i];
}

/// Calls `work(first, count)` on parts of so many elements.
template <class Work>
void on_threads(int threads, std::size_t elements, Work&& work) {
  constexpr std::size_t line = 16;  // floats
  parallel_for(
      threads, elements,
      [&](Range piece) {
        const DenormalScope flushing(true);
        work(piece.begin, piece.size());
      },
      line);
}

}  // namespace

ElasticSteps::ElasticSteps(Communicator communicator, const Replica& replica, const Easgd& elastic,
                           FusionOptions options)
    : communicator_(std::move(communicator)),
      replica_(replica),
      elastic_(elastic),
      arena_(replica.dense_arena()),
      differences_memory_(communicator_.allocate(replica.plan().arena_bytes, Memory::node_shared)),
      differences_(communicator_, replica.plan().slots, differences_memory_,
                   options_of_differences(std::move(options))),
      leave_(communicator_) {
  agree(communicator_, [&] { center_ = Buffer::host(arena_.count * sizeof(float)); });
}

// ---- a step ---------------------------------------------------------------------------------------------------------

void ElasticSteps::begin() {
  if (!differs_.values) std::copy_n(arena_.values, arena_.count, center());
}

void ElasticSteps::publish(UpdateOutcome* outcome, Stream& stream) {
  if (outcome->applied == 0) ++outcome->updates;  // all ranks count alike, and have one schedule
  const bool asks_to_leave = sums().flags.leave > 0;
  own_.count(sums(), *outcome, outcome->updates);
  ++steps_;
  differs_ = {.values = true, .average = true, .states = true};
  sent_ = {};
  const bool early =
      std::exchange(asked_, false) || leave_.after_step(asks_to_leave, steps_, elastic_.communicate_every);
  if (!early && steps_ < elastic_.communicate_every) return publish_own(*outcome, stream);
  sums() = own_.told();
  sent_ = std::exchange(own_, {});
  communicate(stream);
  agreed_ = true;
  const StepFlags& flags = sums().flags;
  if (early || flags.stop + flags.leave + flags.save > 0) take_center();
  outcome->finite = tells_nonfinite(sums()) ? 0 : 1;
  outcome->spoiled = tells_spoiled(sums()) || !all_finite(stream.threads(), {center(), arena_.count}) ? 1 : 0;
}

/// A step without a result, except the first step of a training: its sums are exchanged, so that there is a loss.
void ElasticSteps::publish_own(UpdateOutcome& outcome, Stream& stream) {
  sums() = {};
  if (!std::exchange(agreed_, true)) {
    sums() = std::exchange(own_.sums, {});
    send(stream);
    differences_.wait_for_control(stream);
  }
  outcome.finite = 1;
  outcome.spoiled = 0;
}

void ElasticSteps::send(Stream& stream) {
  differences_.begin();
  for (const GradientSlot& slot : replica_.plan().slots) differences_.mark_ready(slot.id, stream);
}

void ElasticSteps::communicate(Stream& stream) {
  leave_.finish();
  auto* const differences = reinterpret_cast<float*>(differences_memory_.data());
  const auto rate = static_cast<float>(elastic_.rate(communicator_.size()));
  on_threads(stream.threads(), arena_.count, [&](std::size_t at, std::size_t count) {
    pull(arena_.values + at, center() + at, differences + at, rate, count);
  });
  send(stream);
  differences_.wait(stream);
  on_threads(stream.threads(), arena_.count,
             [&](std::size_t at, std::size_t count) { move_center(differences + at, center() + at, count); });
  steps_ = 0;
  ++communications_;
}

void ElasticSteps::take_center() {
  if (std::exchange(differs_.values, false)) std::copy_n(center(), arena_.count, arena_.values);
}

// ---- between steps --------------------------------------------------------------------------------------------------

void ElasticSteps::settle(Stream& stream) {
  if (steps_ > 0) {
    const StepControl kept = std::exchange(sums(), {});
    communicate(stream);
    sums() = kept;
  }
  take_center();
  if (replica_.average().bytes() > 0 && std::exchange(differs_.average, false))
    take_mean_of_average(communicator_, replica_);
}

void ElasticSteps::set_updates(std::uint64_t updates) {
  leave_.finish();
  agreed_ = updates > 0;  // the loss of the last step is known
  steps_ = 0;
  own_ = sent_ = {};
  differs_ = {};
}

void ElasticSteps::gather(std::span<float* const> states) {
  if (!std::exchange(differs_.states, false)) return;
  for (float* state : states) communicator_.allreduce(Tensor(std::span(state, arena_.count)), ReduceOp::mean);
}

std::string ElasticSteps::explain_nonfinite() { return explain_own_steps(communicator_, sent_); }

// ---- reports --------------------------------------------------------------------------------------------------------

ExchangeReport ElasticSteps::report() const {
  std::vector<std::string> plan = differences_.describe(), costs = differences_.report();
  plan.push_back("local steps, towards a center every " + std::to_string(elastic_.communicate_every) + " by " +
                 shortest(elastic_.rate(communicator_.size())));
  const double waited = differences_.exposed_seconds();
  costs.push_back(std::to_string(communications_) + " communications sent " + human_bytes(differences_.sent_bytes()) +
                  " in messages; this rank waited " + formatted("%.6f", waited) + " s for them");
  return {.plan = std::move(plan),
          .costs = std::move(costs),
          .memory = differences_.memory() + differences_memory_.bytes() + center_.bytes(),
          .buckets = differences_.buckets(),
          .synchronisations = {communications_, differences_.sent_bytes(), waited, waited}};
}

}  // namespace ronda
