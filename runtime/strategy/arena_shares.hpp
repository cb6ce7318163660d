#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/compute_device.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/tensor.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/runtime/key_value/roles.hpp>
#include <ronda/runtime/strategy/replica_plan.hpp>

namespace ronda {

/// The part of an arena of `count` elements that is the rank's where the ranks share it out: as many bytes as any
/// other's, but for a line of 16 elements (64 bytes), at which it is cut.
[[nodiscard]] Range share_of_rank(std::size_t count, std::size_t rank, std::size_t ranks) noexcept;
/// All shares, by rank.
[[nodiscard]] std::vector<Range> shares_of_ranks(std::size_t count, std::size_t ranks);
/// Where servers share it out, and workers have none.
[[nodiscard]] std::vector<Range> shares_of_servers(std::size_t count, const Roles& roles);
/// Elements of the servers' shares, in the order of their ranks.
/// @param shares  by rank
[[nodiscard]] std::vector<std::size_t> sizes_of_servers(std::span<const Range> shares, const Roles& roles);
[[nodiscard]] std::vector<std::size_t> sizes_of(std::span<const Range> shares);
/// Those of a float32 arena that a bucket has.
[[nodiscard]] Range elements_of(const FusionBuffer::Bucket& bucket) noexcept;
/// `bucket 3`, for messages and plans.
[[nodiscard]] std::string label_of_bucket(std::size_t number);
/// These elements of a float32 arena.
[[nodiscard]] Tensor floats_in(const Buffer& arena, const Range& elements);
/// Elements of all shares, by rank.
[[nodiscard]] std::vector<std::size_t> share_sizes(std::size_t count, std::size_t ranks);
/// Elements of the shares of each node's ranks, by node, where these lie one after the other in the arena. Throws
/// InputError where they do not, because the ranks of a node are not numbered one after the other.
/// @param nodes  by rank
[[nodiscard]] std::vector<std::size_t> share_sizes_by_node(std::size_t count, std::span<const std::int64_t> nodes);

/// Throws InputError, with the reason and the remedy, where a rank cannot update its share with the states of that
/// alone: on GPUs, with sparse tables, with a rule that needs more than its own elements.
void require_divisible(const ReplicaPlan& plan, const Optimizer& optimizer, const ComputeDevice& device);
/// Likewise, where a server cannot update its share with the values and states of that alone.
void require_servable(const ReplicaPlan& plan, const Optimizer& optimizer, const ComputeDevice& device);

}  // namespace ronda
