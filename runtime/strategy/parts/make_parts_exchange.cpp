#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/strategy/replica/arena_memory.hpp>
#include <ronda/runtime/strategy/exchange/bucketed_allreduce.hpp>
#include <ronda/runtime/strategy/parts/make_parts_exchange.hpp>
#include <ronda/runtime/strategy/step/demands.hpp>

#include <utility>

namespace ronda {

void require_float32_on_processors(const MirroredOptions& options, std::string_view strategy) {
  const DType dtype = options.platform.primitives->dtype();
  refuse_all_but_float32_on_processors({.half_type = dtype == DType::float32 ? "" : name_of(dtype),
                                        .on_gpu = options.platform.device.context->device().kind != DeviceKind::cpu},
                                       strategy);
}

std::unique_ptr<PartsExchange> make_parts_exchange(RankGroups& ranks, Replica& replica, Buffer values,
                                                   FusionOptions fusion) {
  const ReplicaPlan& planned = replica.plan();
  replica.take_arenas(std::move(values),
                      allocate_arena(ArenaPlace::gradients, planned.arena_bytes, ranks.replicas, Memory::node_shared),
                      {});
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

std::vector<std::string> describe_sums(Communicator& all, const RankGroups& ranks, const GradientExchange& exchange,
                                       const std::string& noun) {
  std::vector<std::string> lines;
  if (ranks.shard.count == 1) return lines;
  const auto texts = all.gather_texts(listed(
      exchange.report().plan, [](const std::string& line) { return line; }, "; "));
  for (std::size_t part = 0; part < ranks.parts; ++part)
    lines.push_back(noun + " " + std::to_string(part) + " sums " + texts[part]);
  return lines;
}

}  // namespace ronda
