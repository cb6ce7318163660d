#include <ronda/core/clock.hpp>
#include <ronda/core/counted.hpp>
#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/arena_shares.hpp>
#include <ronda/runtime/strategy/exchange/parameter_servers.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

constexpr const char* pull_label = "the new parameters";

FusionOptions for_sums() {
  FusionOptions options;
  options.label = "the step's sums";
  return options;
}

}  // namespace

ParameterServers::ParameterServers(Communicator communicator, const KeyValueRoles& roles,
                                   const std::vector<GradientSlot>& slots, const Replica& replica,
                                   const FusionOptions& options)
    : communicator_(std::move(communicator)),
      roles_(roles),
      replica_(replica),
      shares_(shares_of_servers(replica.plan().elements(), roles)),
      buckets_(buckets_to_push(slots, options)),
      control_(communicator_, {}, replica.gradients(), for_sums()),
      spoiled_(communicator_) {
  const auto pieces = cut_buckets(buckets_, shares_);
  const Communicator alike = communicator_.split(is_server() ? 1 : 0, communicator_.rank());
  agree(communicator_, [&] {  // sends and receives are planned by each rank for itself
    if (!is_server()) {
      pushes_ = std::make_unique<GradientPushes>(communicator_, slots, buckets_, pieces, replica.gradients(), options);
    } else {
      arrivals_ = std::make_unique<GradientArrivals>(communicator_, roles_, pieces, share(), replica.gradients(), options);
      to_sum_ = replica.dense_arena();
      to_sum_.values += share().begin;
      to_sum_.gradients += share().begin;
      to_sum_.count = share().size();
      to_sum_.more_gradients = arrivals_->others();
    }
    plan_pulls();
  });
  all_sums_ = communicator_.plan(AllgatherSpec{floats_in(replica.gradients(), {0, replica.plan().elements()}),
                                               sizes_of(shares_), "the sums of gradients"});
  if (is_server()) plan_among_servers(alike);
  traffic_.servers = roles_.servers();
}

/// Not collective.
void ParameterServers::plan_pulls() {
  const auto workers = static_cast<std::size_t>(roles_.workers());
  if (is_server()) {
    for (int worker = 0; worker < roles_.workers() && share().size() > 0; ++worker)
      pulls_.push_back(communicator_.plan(SendSpec{floats_in(replica_.values(), share()), worker, pull_label}));
    pulled_bytes_ = pulls_.size() * share().size() * sizeof(float);
  } else {
    for (std::size_t rank = workers; rank < shares_.size(); ++rank) {
      if (shares_[rank].size() == 0) continue;
      const Tensor theirs = floats_in(replica_.values(), shares_[rank]);
      pulls_.push_back(communicator_.plan(ReceiveSpec{theirs, static_cast<int>(rank), pull_label}));
      pulled_bytes_ += shares_[rank].size() * sizeof(float);
    }
  }
  pulled_.resize(pulls_.size());
}

/// Collective over the servers.
void ParameterServers::plan_among_servers(Communicator servers) {
  if (servers.size() == 1) return;
  const auto counts = sizes_of(std::span(shares_).subspan(static_cast<std::size_t>(roles_.workers())));
  const Range all{0, replica_.plan().elements()};
  all_values_ = servers.plan(AllgatherSpec{floats_in(replica_.values(), all), counts, "servers' parameters"});
  if (replica_.average().bytes() > 0)
    all_averages_ = servers.plan(AllgatherSpec{floats_in(replica_.average(), all), counts, "servers' averages"});
}

// ---- a step ---------------------------------------------------------------------------------------------------------

void ParameterServers::begin() {
  control_.begin();
  ++pushes_begun_;
  if (pushes_) pushes_->begin();
}

/// A server that computes, in a step by hand, has no samples.
void ParameterServers::mark_ready(ParameterId id, Stream& stream) {
  if (pushes_) pushes_->mark_ready(id, stream);
}

void ParameterServers::reduce(Sums wanted, Stream& stream) {
  if (pushes_)
    pushes_->finish(stream);
  else
    arrivals_->start(stream);
  const double begin = steady_seconds();
  control_.wait(stream);
  if (pushes_)
    pushes_->wait(stream);
  else
    arrivals_->wait(stream);
  traffic_.pushed_bytes += pushes_ ? pushes_->bytes() : arrivals_->bytes();
  if (arrivals_) updated_ = {to_sum_};
  if (wanted == Sums::of_all) {
    if (arrivals_) {
      arrivals_->add_up(stream);
      updated_.front().more_gradients = {};
    }
    stream.wait(all_sums_->start(stream.record()));
    traffic_.pulled_bytes += pulled_bytes_;
  }
  exposed_seconds_ += steady_seconds() - begin;
}

void ParameterServers::publish(UpdateOutcome* outcome, Stream& stream) {
  const double begin = steady_seconds();
  for (std::size_t i = 0; i < pulls_.size(); ++i) pulled_[i] = pulls_[i]->start(stream.record());
  stream.wait(spoiled_.start(*outcome, stream));
  for (const Event& pulled : pulled_) stream.wait(pulled);
  spoiled_.set(outcome);
  traffic_.pulled_bytes += pulled_bytes_;
  values_differ_ = averages_differ_ = true;
  if (std::exchange(asked_, false)) gather_values(stream);
  exposed_seconds_ += steady_seconds() - begin;
}

void ParameterServers::gather_values(Stream& stream) {
  if (std::exchange(values_differ_, false) && all_values_) stream.wait(all_values_->start(stream.record()));
}

/// The average of a step's values is made after the step is published.
void ParameterServers::settle(Stream& stream) {
  gather_values(stream);
  if (std::exchange(averages_differ_, false) && all_averages_) stream.wait(all_averages_->start(stream.record()));
}

/// Each worker has what it lost itself; that all know how many pushes there were lets any of them write it down.
void ParameterServers::visit(StateVisitor& visitor) {
  if (pushes_)
    pushes_->visit(visitor);
  else if (keeps_lost(buckets_.front().compression))
    visitor.visit({"pushes.runs", Tensor(std::span(&pushes_begun_, 1)), Scope::per_rank});
}

// ---- reports --------------------------------------------------------------------------------------------------------

std::vector<std::string> ParameterServers::describe() const {
  std::vector<std::string> lines = describe_pushes(buckets_);
  lines.push_back(counted(roles_.workers(), "worker") + ", ranks from 0 on, and " +
                  counted(roles_.servers(), "server") + ", from " + std::to_string(roles_.workers()) + " on");
  return lines;
}

std::vector<std::string> ParameterServers::report() const {
  return {"this rank " + std::string(is_server() ? "was pushed " : "pushed ") + human_bytes(traffic_.pushed_bytes) +
          (is_server() ? " of gradients, and sent " : " of gradients, and pulled ") +
          human_bytes(traffic_.pulled_bytes) + "; it waited " + std::to_string(exposed_seconds_) + " s"};
}

std::size_t ParameterServers::memory() const noexcept {
  return arrivals_ ? arrivals_->memory() : pushes_->memory();
}

}  // namespace ronda
