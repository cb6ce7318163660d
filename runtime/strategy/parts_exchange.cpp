#include <ronda/core/clock.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/listed.hpp>
#include <ronda/runtime/strategy/exchange/bucketed_allreduce.hpp>
#include <ronda/runtime/strategy/parts_exchange.hpp>

#include <algorithm>
#include <numeric>
#include <span>

namespace ronda {

PartsExchange::PartsExchange(Communicator group, std::unique_ptr<GradientExchange> part)
    : group_(std::move(group)),
      part_(std::move(part)),
      numbers_(static_cast<std::size_t>(group_.size())),
      spoiled_(group_) {
  const auto plan = [&](std::span<double> numbers, const char* label) {
    return group_.plan(AllreduceSpec{.tensors = {Tensor(numbers)}, .label = label});
  };
  sums_ = plan(std::span(&part_->sums().loss, StepControl::count), "the parts' sums of a step");
  sum_ = plan(std::span(numbers_), "the parts' squared norms");
}

void PartsExchange::wait_for(Event event) {
  const double begin = steady_seconds();
  event.wait();
  exposed_seconds_ += steady_seconds() - begin;
}

void PartsExchange::reduce(Sums wanted, Stream& stream) {
  part_->reduce(wanted, stream);
  wait_for(sums_->start());
}

/// In the order of the parts, by whatever algorithm: each sum of the allreduce has one number that is not zero.
double PartsExchange::sum(double mine) {
  std::ranges::fill(numbers_, 0.0);
  numbers_[static_cast<std::size_t>(group_.rank())] = mine;
  wait_for(sum_->start());
  return std::accumulate(numbers_.begin(), numbers_.end(), 0.0);
}

void PartsExchange::publish(UpdateOutcome* outcome, Stream& stream) {
  part_->publish(outcome, stream);
  wait_for(spoiled_.start(*outcome, stream));
  spoiled_.set(outcome);
}

void require_float32_on_processors(const MirroredOptions& options, const std::string& strategy) {
  if (options.platform.device.context->device().kind != DeviceKind::cpu)
    throw InputError(".strategy = " + strategy + " is for processors; take .device = cpu, or .strategy = mirrored");
  if (options.platform.primitives->dtype() != DType::float32)
    throw InputError(".strategy = " + strategy +
                     " computes in float32; take .precision = float32, or .strategy = mirrored");
}

std::unique_ptr<PartsExchange> make_parts_exchange(RankGroups& ranks, Replica& replica, Buffer values,
                                                   FusionOptions fusion) {
  const ReplicaPlan& planned = replica.plan();
  replica.take_arenas(std::move(values), ranks.replicas.allocate(planned.arena_bytes, Memory::node_shared), {});
  fusion.dtype = DType::float32;
  return std::make_unique<PartsExchange>(
      ranks.group, std::make_unique<BucketedAllreduce>(ranks.replicas, planned.slots, replica.reduced(),
                                                       replica.dense_arena(), fusion));
}

std::unique_ptr<PlannedRankSums> make_rank_sums(Communicator& replicas, const Program& program) {
  const std::vector<std::size_t> counts = program.rank_sums();
  if (replicas.size() == 1 || counts.empty()) return nullptr;
  return std::make_unique<PlannedRankSums>(replicas, counts);
}

std::vector<std::string> describe_sums(Communicator& all, const RankGroups& ranks, const PartsExchange& exchange,
                                       const std::string& noun) {
  std::vector<std::string> lines;
  if (ranks.shard.count == 1) return lines;
  const auto texts = all.gather_texts(listed(
      exchange.describe(), [](const std::string& line) { return line; }, "; "));
  for (std::size_t part = 0; part < ranks.parts; ++part)
    lines.push_back(noun + " " + std::to_string(part) + " sums " + texts[part]);
  return lines;
}

}  // namespace ronda
