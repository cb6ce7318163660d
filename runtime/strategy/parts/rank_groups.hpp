#pragma once
#include <cstddef>
#include <exception>

#include <ronda/collectives/communicator.hpp>
#include <ronda/data/batch_plan.hpp>

namespace ronda {

/// Groups of neighbouring ranks; each group has one model together, one part on each rank. Four ranks, two per group:
///
///     rank    0  1  2  3
///     group   0  0  1  1      computes a part of each global batch
///     part    0  1  0  1      the ranks with the same part average its gradients
struct RankGroups {
  /// Collective. `ranks_a_group` must divide the number of ranks. Between nodes the groups choose their algorithms by
  /// the link costs between all ranks, which are measured now if unknown, and kept from run to run.
  RankGroups(const Communicator& all, std::size_t ranks_a_group)
      : parts(ranks_a_group),
        part(static_cast<std::size_t>(all.rank()) % parts),
        shard(shard_of(static_cast<std::size_t>(all.rank()), static_cast<std::size_t>(all.size()), parts)),
        group(split_with_costs(all, shard.index, part)),
        replicas(split_with_costs(all, part, shard.index)) {}

  /// The part of each global batch that a rank computes with the other ranks of its group.
  [[nodiscard]] static Shard shard_of(std::size_t rank, std::size_t ranks, std::size_t ranks_a_group) noexcept {
    return {rank / ranks_a_group, ranks / ranks_a_group};
  }

  std::size_t parts, part;
  Shard shard;
  Communicator group;     ///< the ranks of this rank's group, by part
  Communicator replicas;  ///< the ranks with the same part as this rank

 private:
  [[nodiscard]] static Communicator split_with_costs(const Communicator& all, std::size_t color, std::size_t key) {
    if (all.topology().nodes > 1) static_cast<void>(all.link_costs());
    return all.split(static_cast<int>(color), static_cast<int>(key));
  }
};

/// Runs `work`, which is collective over some of the ranks and throws on all of these: then all ranks throw.
template <class Work>
void agree_on_groups(const Communicator& all, Work&& work) {
  std::exception_ptr error;
  try {
    work();
  } catch (...) {
    error = std::current_exception();
  }
  agree(all, [&] {
    if (error) std::rethrow_exception(error);
  });
}

}  // namespace ronda
