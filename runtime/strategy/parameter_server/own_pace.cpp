#include <ronda/core/text.hpp>
#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/parameter_server/own_pace.hpp>
#include <ronda/runtime/strategy/parameter_server/own_pace_server.hpp>
#include <ronda/runtime/strategy/parameter_server/own_pace_worker.hpp>

#include <utility>

namespace ronda {

std::unique_ptr<OwnPace> OwnPace::make(const Communicator& communicator, const KeyValueOptions& how,
                                       const std::vector<GradientSlot>& slots, const Replica& replica,
                                       const FusionOptions& options) {
  if (roles_of(how, communicator.size()).is_server(communicator.rank()))
    return std::make_unique<OwnPaceServer>(communicator, how, slots, replica, options);
  return std::make_unique<OwnPaceWorker>(communicator, how, slots, replica, options);
}

OwnPace::OwnPace(const Communicator& communicator, const KeyValueOptions& how, const std::vector<GradientSlot>& slots,
                 const Replica& replica, const FusionOptions& options)
    : communicator_(communicator),
      alike_(communicator_.split(roles_of(how, communicator.size()).is_server(communicator.rank()) ? 1 : 0,
                                 communicator.rank())),
      how_(how),
      roles_(roles_of(how, communicator.size())),
      replica_(replica),
      shares_(shares_of_servers(replica.plan().elements(), roles_)),
      buckets_(buckets_to_push(slots, options)),
      pieces_(cut_buckets(buckets_, shares_)) {
  const Range all{0, replica.plan().elements()};
  const auto sizes = sizes_of(shares_);
  if (replica.average().bytes() > 0)
    all_averages_ = communicator_.plan(AllgatherSpec{floats_in(replica.average(), all), sizes, "servers' averages"});
  if (roles_.servers() > 1 && roles_.is_server(communicator_.rank())) {
    all_values_ = alike_.plan(
        AllgatherSpec{floats_in(replica.values(), all), sizes_of_servers(shares_, roles_), "servers' parameters"});
  }
  traffic_.servers = roles_.servers();
  traffic_.staleness.resize(how.asynchronous ? ServerTraffic::ages : 0);
}

/// All ranks have the same values: the last step settled.
void OwnPace::settle(Stream& stream) {
  if (!settled_) throw LogicError("ranks at their own pace meet after a step that settles: synchronise_next");
  if (!std::exchange(differs_, false)) return;
  if (all_averages_) stream.wait(all_averages_->start(stream.record()));
  std::vector<std::int64_t> counts(traffic_.staleness.begin(), traffic_.staleness.end());
  counts.push_back(static_cast<std::int64_t>(traffic_.dropped));
  communicator_.broadcast(Tensor(std::span(counts)), roles_.rank_of_server(0));
  traffic_.dropped = static_cast<std::uint64_t>(counts.back());
  for (std::size_t age = 0; age < traffic_.staleness.size(); ++age)
    traffic_.staleness[age] = static_cast<std::uint64_t>(counts[age]);
}

std::optional<std::size_t> OwnPace::samples_for(std::size_t step, std::size_t /*steps*/) { return step_ = step; }

/// @param steps  number of steps since the last one that settled, before this one
void OwnPace::end_step(const Record& record, std::uint64_t steps) {
  differs_ = true;
  asked_ = false;
  settled_ = record.settles != 0;
  if (how_.asynchronous) taken_samples_ = {step_ - steps + record.samples_of, settled_};
}

void OwnPace::gather_values(Stream& stream) {
  if (all_values_) stream.wait(all_values_->start(stream.record()));
}

std::vector<std::string> OwnPace::lines_of_plan() const {
  std::vector<std::string> lines = describe_pushes(buckets_);
  const std::string workers = counted(roles_.workers(), "worker");
  std::string line =
      "each step takes the gradients of the first " + std::to_string(how_.replicas_to_aggregate) + " of " + workers;
  if (how_.asynchronous) line = "each step takes the gradient of one of " + workers + ", as it comes";
  if (how_.max_staleness)
    line += "; a worker that is " + counted(static_cast<std::int64_t>(*how_.max_staleness), "gradient") +
            " ahead of the slowest waits";
  lines.push_back(line);
  lines.push_back(describe_roles(roles_));
  return lines;
}

std::vector<std::string> OwnPace::lines_of_costs() const {
  return {"this rank pushed " + human_bytes(traffic_.pushed_bytes) + " of gradients, and pulled " +
          human_bytes(traffic_.pulled_bytes) + "; " + counted(static_cast<std::int64_t>(traffic_.dropped), "gradient") +
          " of all workers came too late"};
}

ExchangeReport OwnPace::report() const {
  return {
      .plan = lines_of_plan(), .costs = lines_of_costs(), .memory = memory(), .buckets = buckets_, .traffic = traffic_};
}

}  // namespace ronda
