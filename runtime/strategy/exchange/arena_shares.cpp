#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/step/demands.hpp>

#include <algorithm>
#include <string>

namespace ronda {
namespace {

constexpr std::size_t per_line = 16;  ///< floats: ranks write to cache lines of their own

[[noreturn]] void refuse(const std::string& why, const Message& remedy) {
  throw InputError(why + ", and with " + setting("strategy", "sharded") +
                   " a rank has those of its own part alone; take " + setting("strategy", "mirrored") + remedy);
}

}  // namespace

Range share_of_rank(std::size_t count, std::size_t rank, std::size_t ranks) noexcept {
  const Range lines = part_of((count + per_line - 1) / per_line, rank, ranks);
  return {std::min(lines.begin * per_line, count), std::min(lines.end * per_line, count)};
}

std::vector<Range> shares_of_ranks(std::size_t count, std::size_t ranks) {
  std::vector<Range> shares(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) shares[rank] = share_of_rank(count, rank, ranks);
  return shares;
}

std::vector<Range> shares_of_servers(std::size_t count, const Roles& roles) {
  const auto of_servers = shares_of_ranks(count, static_cast<std::size_t>(roles.servers()));
  std::vector<Range> shares(static_cast<std::size_t>(roles.ranks()));
  for (int i = 0; i < roles.servers(); ++i)
    shares[static_cast<std::size_t>(roles.rank_of_server(i))] = of_servers[static_cast<std::size_t>(i)];
  return shares;
}

std::vector<std::size_t> sizes_of_servers(std::span<const Range> shares, const Roles& roles) {
  std::vector<std::size_t> sizes;
  for (int i = 0; i < roles.servers(); ++i)
    sizes.push_back(shares[static_cast<std::size_t>(roles.rank_of_server(i))].size());
  return sizes;
}

std::vector<std::size_t> sizes_of(std::span<const Range> shares) {
  std::vector<std::size_t> sizes;
  for (const Range& share : shares) sizes.push_back(share.size());
  return sizes;
}

Range elements_of(const FusionBuffer::Bucket& bucket) noexcept {
  return {bucket.offset / sizeof(float), (bucket.offset + bucket.bytes) / sizeof(float)};
}

std::string label_of_bucket(std::size_t number) { return "bucket " + std::to_string(number); }

Tensor floats_in(const Buffer& arena, const Range& elements) {
  return Tensor(std::span(reinterpret_cast<float*>(arena.data()) + elements.begin, elements.size()));
}

ArenaRange part_of_arena(ArenaRange arena, const Range& elements) noexcept {
  arena.values += elements.begin;
  arena.gradients += elements.begin;
  arena.count = elements.size();
  return arena;
}

std::vector<std::size_t> share_sizes(std::size_t count, std::size_t ranks) {
  return sizes_of(shares_of_ranks(count, ranks));
}

std::vector<std::size_t> share_sizes_by_node(std::size_t count, std::span<const std::int64_t> nodes) {
  if (!std::ranges::is_sorted(nodes))
    throw InputError("one copy of the parameters a node (" + setting("one_copy") +
                     ") needs ranks of a node that are numbered one after the other; start them so (mpirun --map-by "
                     "slot, srun --distribution=block), or leave it out");
  const std::vector<std::size_t> shares = share_sizes(count, nodes.size());
  std::vector<std::size_t> sizes(static_cast<std::size_t>(nodes.back()) + 1);
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) sizes[static_cast<std::size_t>(nodes[rank])] += shares[rank];
  return sizes;
}

void require_divisible(const ReplicaPlan& plan, const Optimizer& optimizer, const ComputeDevice& device) {
  const std::string rule = "optimizer " + std::string(optimizer.name());
  if (device.context->device().kind != DeviceKind::cpu)
    refuse("a GPU updates all elements, by the states of all", ", or " + setting("device", "cpu"));
  if (!plan.tables().empty())
    refuse("the rows of " + plan.tables().front().name +
               ", whose gradient is sparse, are updated on every rank by their states",
           ", or an embedding with " + setting("sparse", "false"));
  if (optimizer.has_two_passes())
    refuse(rule + " works out an update of whole parameters from all of their states", ", or another optimizer");
  if (plan.mixed() && optimizer.needs_norms())
    refuse(
        rule + ", with layers of " + std::string(name_of(plan.dtype)) + ", updates all elements by the states of all",
        ", or another optimizer");
}

void require_servable(const ReplicaPlan& plan, const Optimizer& optimizer, const ComputeDevice& device) {
  if (device.context->device().kind != DeviceKind::cpu)
    throw InputError("servers and workers of " + setting("strategy", "parameter_server") +
                     " compute on processors, not on GPUs; take " + setting("device", "cpu") + ", or " +
                     setting("strategy", "mirrored"));
  if (plan.mixed())
    throw InputError("the values of " + setting("strategy", "parameter_server") + " are float32, not " +
                     std::string(name_of(plan.dtype)) + "; take " + setting("strategy", "mirrored") + " or sharded");
  if (optimizer.has_two_passes() || optimizer.needs_norms())
    refuse_update_of_whole(optimizer, "parameter_server", "a server knows its own part alone");
}

}  // namespace ronda
