#include <ronda/core/denormals.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/strategy/exchange/dense_exchange.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_plan.hpp>
#include <ronda/runtime/strategy/replica/cost_table.hpp>
#include <ronda/runtime/strategy/step/replica_updater.hpp>

#include <string>

namespace ronda {
namespace {

/// Of what `ranks` have together.
std::size_t share_of_bytes(std::size_t bytes, std::size_t ranks) { return (bytes + ranks - 1) / ranks; }

class MirroredPlan final : public ExchangePlan {
 public:
  std::unique_ptr<GradientExchange> make(Communicator& communicator, Replica& replica, const ExchangeSettings& settings,
                                         EventSink& sink) const override {
    return make_dense_exchange(communicator, replica, settings, sink);
  }
};

}  // namespace

ExchangeSettings exchange_settings(const MirroredOptions& options) {
  return {.fusion = options.fusion,
          .micro_batches = options.shape.micro_batches,
          .node_update_bytes = options.node_update_bytes,
          .keeps_average = options.ema_decay > 0};
}

StrategyPlan plan_mirrored(const MirroredOptions& options, const ExchangePlan& exchange, const Replica& replica,
                           const Optimizer& optimizer, const Communicator& communicator) {
  const ReplicaPlan& planned = replica.plan();
  const ExchangeSettings settings = exchange_settings(options);
  exchange.require_possible(replica, optimizer, settings);
  const BufferPlan& buffers = replica.program().buffer_plan();
  const std::size_t exact = planned.elements() * sizeof(float);
  StrategyPlan plan;
  plan.device = options.platform.device;
  plan.batch_capacity = options.shape.batch_capacity;
  plan.outputs = replica.program().output().shape;
  const auto sharing =
      exchange.has_one_copy(communicator) ? static_cast<std::size_t>(communicator.topology().ranks_on_node) : 1;
  if (const auto shares = exchange.shares_of_states(communicator.size(), planned.elements()); shares.size() > 1)
    plan.states = shares[static_cast<std::size_t>(communicator.rank())];
  const std::size_t kept = plan.states ? plan.states->size() * sizeof(float) : exact;
  plan.memory = {
      .parameters = share_of_bytes(planned.arena_bytes, sharing) + (planned.mixed() ? exact : 0),
      .gradients = exchange.gradient_bytes(replica, settings, communicator.size()),
      .optimizer = kept * optimizer.states().size() + (options.ema_decay > 0 ? share_of_bytes(exact, sharing) : 0),
      .activations =
          buffers.bytes - buffers.scratch_bytes + bytes_of_queue(options.platform.device, queue_options(options)),
      .workspace = buffers.scratch_bytes};
  plan.lines = planned.lines;
  return plan;
}

void tell_plan(const StrategyPlan& plan, const MirroredOptions& options, const ExchangePlan& exchange,
               Communicator& communicator, Replica& replica, EventSink& sink) {
  for (const auto& line : communicator.devices()) sink.on_detail(line);
  for (const auto& note : communicator.take_notes()) sink.on_message(Severity::warning, note);
  for (const auto& line : plan.lines) sink.on_detail(line);
  for (const auto& request : replica.program().buffer_requests())
    if (request.bytes > 0) sink.on_detail("memory for " + request.owner + ": " + human_bytes(request.bytes));
  for (const auto& line : exchange.describe(communicator, replica.plan().elements())) sink.on_detail(line);
  if (exchange.has_one_copy(communicator))
    sink.on_detail("the " + std::to_string(communicator.topology().ranks_on_node) +
                   " ranks of a node share one copy of the parameters, " + human_bytes(replica.plan().arena_bytes));
  sink.on_detail(plan.memory.text());
  if (!sink.wants_details()) return;
  const FlushDenormals flushing(replica.stream().threads());
  for (const auto& line : cost_table(replica.measure(options.shape.fields))) sink.on_detail(line);
}

std::unique_ptr<ExchangePlan> exchange_plan(const Mirrored& /*options*/) { return std::make_unique<MirroredPlan>(); }

}  // namespace ronda
