#include <ronda/core/clock.hpp>
#include <ronda/core/counted.hpp>
#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/arena_shares.hpp>
#include <ronda/runtime/strategy/exchange/parameter_servers.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace ronda {
namespace {

constexpr const char* pull_label = "the new parameters";

/// Of each share what lies before the sparse tables.
std::vector<Range> before_tables(std::vector<Range> shares, const ReplicaPlan& plan) {
  for (Range& share : shares) share.end = std::max(share.begin, std::min(share.end, plan.dense_elements()));
  return shares;
}

std::vector<GradientSlot> dense_slots(const ReplicaPlan& plan) {
  return {plan.slots.begin(), plan.slots.end() - std::ssize(plan.tables())};
}

FusionOptions for_sums() {
  FusionOptions options;
  options.label = "the step's sums";
  return options;
}

}  // namespace

ParameterServers::ParameterServers(Communicator communicator, const Roles& roles, Replica& replica,
                                   const FusionOptions& options)
    : communicator_(std::move(communicator)),
      roles_(roles),
      replica_(replica),
      shares_(shares_of_servers(replica.plan().elements(), roles)),
      dense_shares_(before_tables(shares_, replica.plan())),
      buckets_(buckets_to_push(dense_slots(replica.plan()), options)),
      control_(communicator_, {}, replica.gradients(), for_sums()),
      spoiled_(communicator_) {
  const auto pieces = cut_buckets(buckets_, dense_shares_);
  const Communicator alike = communicator_.split(is_server() ? 1 : 0, communicator_.rank());
  agree(communicator_, [&] {  // sends and receives are planned by each rank for itself
    if (!is_server()) {
      pushes_ =
          std::make_unique<GradientPushes>(communicator_, roles_.index_of(communicator_.rank()),
                                           dense_slots(replica.plan()), buckets_, pieces, replica.gradients(), options);
    } else {
      arrivals_ =
          std::make_unique<GradientArrivals>(communicator_, roles_, pieces, share(), replica.gradients(), options);
      to_sum_ = replica.dense_arena();
      to_sum_.values += share().begin;
      to_sum_.gradients += share().begin;
      to_sum_.count = share().size();
      to_sum_.more_gradients = arrivals_->others();
    }
    plan_pulls();
  });
  all_sums_ = communicator_.plan(AllgatherSpec{floats_in(replica.gradients(), {0, replica.plan().dense_elements()}),
                                               sizes_of(dense_shares_), "the sums of gradients"});
  if (!replica.plan().tables().empty()) rows_ = std::make_unique<ServedRows>(communicator_, roles_, shares_, replica);
  if (is_server()) plan_among_servers(alike);
  traffic_.servers = roles_.servers();
}

/// Not collective.
void ParameterServers::plan_pulls() {
  const auto share_of = [this](int rank) { return dense_shares_[static_cast<std::size_t>(rank)]; };
  std::vector<int> others;  // with whom values are exchanged
  for (int i = 0; is_server() && i < roles_.workers() && share().size() > 0; ++i)
    others.push_back(roles_.rank_of_worker(i));
  for (int i = 0; !is_server() && i < roles_.servers(); ++i)
    if (share_of(roles_.rank_of_server(i)).size() > 0) others.push_back(roles_.rank_of_server(i));
  for (const int other : others)
    pulled_bytes_ += share_of(is_server() ? communicator_.rank() : other).size() * sizeof(float);
  const std::size_t count = others.size();
  pulls_ = std::make_unique<MessageWindow>(
      communicator_, count, [this, share_of, others = std::move(others)](std::size_t number) {
        const int other = others[number];
        if (is_server()) return communicator_.plan(SendSpec{floats_in(replica_.values(), share()), other, pull_label});
        return communicator_.plan(ReceiveSpec{floats_in(replica_.values(), share_of(other)), other, pull_label});
      });
}

/// Collective over the servers.
void ParameterServers::plan_among_servers(Communicator servers) {
  if (servers.size() == 1) return;
  const auto counts = sizes_of_servers(shares_, roles_);
  const Range all{0, replica_.plan().elements()};
  all_values_ = servers.plan(AllgatherSpec{floats_in(replica_.values(), all), counts, "servers' parameters"});
  if (replica_.average().bytes() > 0)
    all_averages_ = servers.plan(AllgatherSpec{floats_in(replica_.average(), all), counts, "servers' averages"});
}

// ---- a step ---------------------------------------------------------------------------------------------------------

void ParameterServers::begin() {
  control_.begin();
  if (pushes_) pushes_->begin();
}

/// A server that computes, in a step by hand, has no samples. Rows go when all others have.
void ParameterServers::mark_ready(ParameterId id, Stream& stream) {
  const bool sparse = replica_.parameters()[index_of(id)].touched != nullptr;
  if (pushes_ && !sparse) pushes_->mark_ready(id, stream);
}

void ParameterServers::reduce(Sums wanted, Stream& stream) {
  if (pushes_)
    pushes_->finish(stream);
  else
    arrivals_->start(stream);
  const double begin = steady_seconds();
  if (arrivals_) arrivals_->wait(stream);  // before the sums of the step, which wait for the slowest worker's backward
  control_.wait(stream);
  if (pushes_) pushes_->wait(stream);
  if (rows_) rows_->push(stream);
  traffic_.pushed_bytes += pushes_ ? pushes_->bytes() : arrivals_->bytes();
  if (arrivals_) updated_ = {to_sum_};
  if (arrivals_ && rows_) updated_.push_back(rows_->range());
  if (wanted == Sums::of_all) {
    if (arrivals_) {
      arrivals_->add_up(stream);
      updated_.front().more_gradients = {};
    }
    stream.wait(all_sums_->start(stream.record()));
    if (rows_) rows_->tell_sums(stream);
    traffic_.pulled_bytes += pulled_bytes_;
  }
  exposed_seconds_ += steady_seconds() - begin;
}

void ParameterServers::publish(UpdateOutcome* outcome, Stream& stream) {
  const double begin = steady_seconds();
  pulls_->start(stream);
  stream.wait(spoiled_.start(*outcome, stream));
  pulls_->wait();
  if (rows_) rows_->pull(stream);
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

void ParameterServers::visit(StateVisitor& visitor) { pushes_ ? pushes_->visit(visitor) : arrivals_->visit(visitor); }

// ---- reports --------------------------------------------------------------------------------------------------------

std::vector<std::string> ParameterServers::describe() const {
  std::vector<std::string> lines = describe_pushes(buckets_);
  for (const GradientSlot& table : replica_.plan().tables())
    lines.push_back("touched rows of " + table.name + " pushed to servers");
  lines.push_back(describe_roles(roles_));
  return lines;
}

ServerTraffic ParameterServers::server_traffic() const {
  ServerTraffic traffic = traffic_;
  if (rows_) {
    traffic.pushed_bytes += rows_->pushed_bytes();
    traffic.pulled_bytes += rows_->pulled_bytes();
  }
  return traffic;
}

std::vector<std::string> ParameterServers::report() const {
  const ServerTraffic traffic = server_traffic();
  return {"this rank " + std::string(is_server() ? "was pushed " : "pushed ") + human_bytes(traffic.pushed_bytes) +
          (is_server() ? " of gradients, and sent " : " of gradients, and pulled ") +
          human_bytes(traffic.pulled_bytes) + "; it waited " + std::to_string(exposed_seconds_) + " s"};
}

std::size_t ParameterServers::memory() const noexcept { return arrivals_ ? arrivals_->memory() : pushes_->memory(); }

}  // namespace ronda
