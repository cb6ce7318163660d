#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/tensor.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/runtime/key_value/roles.hpp>
#include <ronda/runtime/strategy/replica/replica_plan.hpp>

namespace ronda {

/// Range of an arena of `count` elements that belongs to `rank` if the ranks share it. All shares have the same size,
/// up to a line of 16 elements (64 bytes); cuts are at multiples of a line.
[[nodiscard]] Range share_of_rank(std::size_t count, std::size_t rank, std::size_t ranks) noexcept;
/// All shares, by rank.
[[nodiscard]] std::vector<Range> shares_of_ranks(std::size_t count, std::size_t ranks);
/// The same if the servers share the arena; workers' shares are empty.
[[nodiscard]] std::vector<Range> shares_of_servers(std::size_t count, const Roles& roles);
/// Element counts of the servers' shares, in the order of their ranks.
/// @param shares  by rank
[[nodiscard]] std::vector<std::size_t> sizes_of_servers(std::span<const Range> shares, const Roles& roles);
[[nodiscard]] std::vector<std::size_t> sizes_of(std::span<const Range> shares);
/// Elements of a float32 arena that `bucket` covers.
[[nodiscard]] Range elements_of(const FusionBuffer::Bucket& bucket) noexcept;
/// `bucket 3`, for messages and plans.
[[nodiscard]] std::string label_of_bucket(std::size_t number);
/// View of these elements of a float32 arena.
[[nodiscard]] Tensor floats_in(const Buffer& arena, const Range& elements);
/// These elements of `arena`.
[[nodiscard]] ArenaRange part_of_arena(ArenaRange arena, const Range& elements) noexcept;
/// Element counts of all shares, by rank.
[[nodiscard]] std::vector<std::size_t> share_sizes(std::size_t count, std::size_t ranks);
/// Element counts of the nodes' shares, by node; the shares of a node's ranks must be adjacent in the arena. Throws
/// InputError if they are not, because the ranks of a node are not numbered consecutively.
/// @param nodes  by rank
[[nodiscard]] std::vector<std::size_t> share_sizes_by_node(std::size_t count, std::span<const std::int64_t> nodes);

/// Throws InputError, with the reason and the remedy, if a rank cannot update its share with only the states of that
/// share: on GPUs, with sparse tables, with a rule that needs more than its own elements.
void require_divisible(const ReplicaPlan& plan, const Optimizer& optimizer, const ComputeDevice& device);
/// The same for a server, which has only the values and states of its share.
void require_servable(const ReplicaPlan& plan, const Optimizer& optimizer, const ComputeDevice& device);

}  // namespace ronda
