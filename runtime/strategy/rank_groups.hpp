#pragma once
#include <cstddef>
#include <exception>

#include <ronda/collectives/communicator.hpp>
#include <ronda/data/batch_plan.hpp>

namespace ronda {

/// Ranks in groups of neighbours, each of which has one model together, a part on each rank. Four ranks, two a group:
///
///     rank    0  1  2  3
///     group   0  0  1  1      computes a part of each global batch
///     part    0  1  0  1      the ranks with the same part average its gradients
struct RankGroups {
  /// Collective. `ranks_a_group` divides the ranks. Between nodes the groups choose their algorithms by what messages
  /// cost between all ranks, which is measured now where it is not known, and kept from run to run.
  RankGroups(const Communicator& all, std::size_t ranks_a_group)
      : parts(ranks_a_group),
        part(static_cast<std::size_t>(all.rank()) % parts),
        shard(shard_of(static_cast<std::size_t>(all.rank()), static_cast<std::size_t>(all.size()), parts)),
        group(split_with_costs(all, shard.index, part)),
        replicas(split_with_costs(all, part, shard.index)) {}

  /// The part of each global batch that a rank computes, with the others of its group.
  [[nodiscard]] static Shard shard_of(std::size_t rank, std::size_t ranks, std::size_t ranks_a_group) noexcept {
    return {rank / ranks_a_group, ranks / ranks_a_group};
  }

  std::size_t parts, part;
  Shard shard;
  Communicator group;     ///< the ranks of this rank's group, by part
  Communicator replicas;  ///< the ranks that have this rank's part

 private:
  [[nodiscard]] static Communicator split_with_costs(const Communicator& all, std::size_t color, std::size_t key) {
    if (all.topology().nodes > 1) static_cast<void>(all.link_costs());
    return all.split(static_cast<int>(color), static_cast<int>(key));
  }
};

/// `work` is collective over some of the ranks, which throw together: then all ranks throw.
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
