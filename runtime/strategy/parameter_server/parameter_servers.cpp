#include <ronda/core/clock.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/parameter_server/parameter_servers.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace ronda {
namespace {

/// The last piece goes back when it has come and all else is back: a share has enough of them that this hardly counts.
constexpr std::size_t pieces_of_share = 64;

/// Of each share what lies before the sparse tables.
std::vector<Range> before_tables(std::vector<Range> shares, const ReplicaPlan& plan) {
  for (Range& share : shares) share.end = std::max(share.begin, std::min(share.end, plan.dense_elements()));
  return shares;
}

std::vector<GradientSlot> dense_slots(const ReplicaPlan& plan) {
  return {plan.slots.begin(), plan.slots.end() - std::ssize(plan.tables())};
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
      spoiled_(communicator_) {
  const auto pieces = cut_buckets(buckets_, dense_shares_, pieces_of_share);
  const Communicator alike = communicator_.split(is_server() ? 1 : 0, communicator_.rank());
  sums_ = std::make_unique<ServedControl>(communicator_, alike, roles_);
  agree(communicator_, [&] {  // sends and receives are planned by each rank for itself
    plan_pushes(pieces, options);
    plan_pulls(pieces);
  });
  all_sums_ = communicator_.plan(AllgatherSpec{floats_in(replica.gradients(), {0, replica.plan().dense_elements()}),
                                               sizes_of(dense_shares_), "the sums of gradients"});
  if (!replica.plan().tables().empty()) rows_ = std::make_unique<ServedRows>(communicator_, roles_, shares_, replica);
  if (is_server()) plan_among_servers(alike);
  traffic_.servers = roles_.servers();
}

/// Not collective.
void ParameterServers::plan_pushes(const std::vector<PushedPiece>& pieces, const FusionOptions& options) {
  const Buffer& gradients = replica_.gradients();
  if (is_server())
    arrivals_ = std::make_unique<GradientArrivals>(communicator_, roles_, pieces, share(), gradients, options);
  else
    pushes_ = std::make_unique<GradientPushes>(communicator_, roles_.index_of(communicator_.rank()),
                                               dense_slots(replica_.plan()), buckets_, pieces, gradients, options);
}

/// Not collective. Values travel in the pieces that gradients come in, uncompressed.
void ParameterServers::plan_pulls(const std::vector<PushedPiece>& pieces) {
  const int others = is_server() ? roles_.workers() : roles_.servers();
  std::vector<std::vector<Range>> lanes(static_cast<std::size_t>(others));
  for (const PushedPiece& piece : pieces)
    for (int other = 0; other < others; ++other)
      if (piece.server == (is_server() ? communicator_.rank() : roles_.rank_of_server(other)))
        lanes[static_cast<std::size_t>(other)].push_back(piece.elements);
  std::vector<std::size_t> counts;
  for (const auto& lane : lanes) {
    counts.push_back(lane.size());
    for (const Range& elements : lane) pulled_bytes_ += elements.size() * sizeof(float);
  }
  auto make = [this, lanes = std::move(lanes)](std::size_t lane, std::size_t number) {
    const Tensor values = floats_in(replica_.values(), lanes[lane][number]);
    const std::string label = "new parameters, piece " + std::to_string(number);
    if (is_server()) return communicator_.plan(SendSpec{values, roles_.rank_of_worker(static_cast<int>(lane)), label});
    return communicator_.plan(ReceiveSpec{values, roles_.rank_of_server(static_cast<int>(lane)), label});
  };
  pulls_ = std::make_unique<MessageWindow>(communicator_, counts, std::move(make));
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
  sums_started_ = false;
  if (pushes_) pushes_->begin();
}

/// When the loss is known, before the first gradient goes.
void ParameterServers::start_sums(Stream& stream) {
  if (!std::exchange(sums_started_, true)) sums_->start(stream);
}

/// A server that computes, in a step by hand, has no samples. Rows go when all others have.
void ParameterServers::mark_ready(ParameterId id, Stream& stream) {
  if (pushes_) start_sums(stream);
  const bool sparse = replica_.parameters()[index_of(id)].touched != nullptr;
  if (pushes_ && !sparse) pushes_->mark_ready(id, stream);
}

/// Sums come to where a worker's gradients are.
void ParameterServers::expect_all_sums() {
  if (pushes_) pushes_->keep_before();
}

void ParameterServers::reduce(Sums wanted, Stream& stream) {
  start_sums(stream);
  if (pushes_)
    pushes_->finish(stream);
  else
    arrivals_->start(stream);
  const double begin = steady_seconds();
  by_pieces_ = wanted == Sums::of_range && !rows_;
  sum_up(wanted, stream);
  traffic_.pushed_bytes += pushes_ ? pushes_->bytes() : arrivals_->bytes();
  exposed_seconds_ += steady_seconds() - begin;
}

/// The step's sums, which wait for the slowest worker's backward; and the gradients, unless they are taken piece by
/// piece.
void ParameterServers::sum_up(Sums wanted, Stream& stream) {
  communicator_.wait_until([&] {
    const bool passed = pushes_ ? pushes_->move_on() : arrivals_->move_on();
    return sums_->move_on(stream) && (passed || by_pieces_);
  });
  if (by_pieces_) return;
  if (rows_) rows_->push();
  if (arrivals_) {
    updated_ = {part_of_arena(replica_.dense_arena(), share())};
    updated_.front().more_gradients = arrivals_->take_all(stream);
    if (rows_) updated_.push_back(rows_->range());
  }
  if (wanted == Sums::of_all) tell_sums(stream);
}

/// To all ranks.
void ParameterServers::tell_sums(Stream& stream) {
  if (arrivals_) {
    arrivals_->add_up(stream);
    updated_.front().more_gradients = {};
  }
  stream.wait(all_sums_->start(stream.record()));
  if (rows_) rows_->tell_sums();
  traffic_.pulled_bytes += pulled_bytes_;
}

void ParameterServers::update(FunctionRef<void(const ArenaRange&)> apply, Stream& stream) {
  if (by_pieces_) {
    if (arrivals_) return update_pieces(apply, stream);
    pulls_->start(stream);
    return;
  }
  for (const ArenaRange& range : updated_) apply(range);
  pulls_->start(stream);
}

/// A piece goes to the workers when it is updated.
void ParameterServers::update_pieces(FunctionRef<void(const ArenaRange&)> apply, Stream& stream) {
  const double begin = steady_seconds();
  double updating = 0;
  std::size_t updated = 0;  // pieces
  pulls_->start(stream, updated);
  const auto update_next = [&] {
    const double start = steady_seconds();
    ArenaRange range = part_of_arena(replica_.dense_arena(), arrivals_->pieces()[updated].elements);
    range.more_gradients = arrivals_->take(updated, stream);
    apply(range);
    pulls_->release_in_all(++updated, stream);
    updating += steady_seconds() - start;
  };
  communicator_.wait_until([&] {
    static_cast<void>(arrivals_->move_on());
    static_cast<void>(pulls_->move_on());
    if (updated < arrivals_->come()) update_next();
    return updated == arrivals_->pieces().size();
  });
  exposed_seconds_ += steady_seconds() - begin - updating;
}

void ParameterServers::publish(UpdateOutcome* outcome, Stream& stream) {
  const double begin = steady_seconds();
  const Event told = spoiled_.start(*outcome, stream);
  communicator_.wait_until([&] {  // servers tell when they have updated all, while values are already on their way
    const bool pulled = pulls_->move_on(), pushed = !pushes_ || pushes_->move_on();
    return told.ready() && pulled && pushed;
  });
  if (rows_) rows_->pull();
  if (pushes_ && outcome->applied == 0) pushes_->take_back(stream);
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

ServerTraffic ParameterServers::traffic() const {
  ServerTraffic traffic = traffic_;
  if (rows_) {
    traffic.pushed_bytes += rows_->pushed_bytes();
    traffic.pulled_bytes += rows_->pulled_bytes();
  }
  return traffic;
}

ExchangeReport ParameterServers::report() const {
  ExchangeReport report{.plan = describe_pushes(buckets_),
                        .costs = {},
                        .memory = arrivals_ ? arrivals_->memory() : pushes_->memory(),
                        .buckets = buckets_,
                        .traffic = traffic()};
  for (const GradientSlot& table : replica_.plan().tables())
    report.plan.push_back("touched rows of " + table.name + " pushed to servers");
  report.plan.push_back(describe_roles(roles_));
  report.costs = {
      "this rank " + std::string(is_server() ? "was pushed " : "pushed ") + human_bytes(report.traffic.pushed_bytes) +
      (is_server() ? " of gradients, and sent " : " of gradients, and pulled ") +
      human_bytes(report.traffic.pulled_bytes) + "; it waited " + formatted("%.6f", exposed_seconds_) + " s"};
  return report;
}

}  // namespace ronda
