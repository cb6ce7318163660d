#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/group/group_devices.hpp>
#include <ronda/collectives/group/kept_allreduces.hpp>
#include <ronda/collectives/host/algorithms/tree_merge.hpp>
#include <ronda/collectives/host/planning/host_backend.hpp>
#include <ronda/collectives/members/node_memory.hpp>
#include <ronda/collectives/members/spec_check.hpp>

namespace ronda {

/// A group of ranks: what a Communicator is a handle of. It sees to it that all ranks ask for the same, and
/// hands that to the backend of the memory in which it is to be done. Functions are collective unless they say
/// otherwise.
class Communicator::Group {
 public:
  /// Collective over the ranks of `founding`: no other rank takes part.
  Group(Assembly& founding, const GroupLimits& limits, Ledger ledger);
  Group(const Group&) = delete;

  /// Not collective.
  [[nodiscard]] Members& members() const noexcept { return *members_; }
  [[nodiscard]] const std::shared_ptr<Members>& shared_members() const noexcept { return members_; }
  [[nodiscard]] Agreement& agreement() noexcept { return agreement_; }
  [[nodiscard]] AllreducePlanner& allreduces() noexcept { return host_.allreduces(); }
  [[nodiscard]] const GroupDevices* devices() const noexcept { return devices_.get(); }  ///< null: none yet

  Buffer allocate(std::size_t bytes, Memory memory);
  void use_device(std::shared_ptr<DeviceContext> context, AllreduceAlgorithm wanted,
                  const std::shared_ptr<nccl::Library>& library);
  [[nodiscard]] std::vector<std::byte*> copies_on_node(const Elements& elements);

  /// Takes any of the specs of collective.hpp.
  /// @param often  worth trying what is nearly equal
  /// @param mine   where this rank's part goes to, or comes from, if that is not in `all`: it must fit, on the host
  [[nodiscard]] std::unique_ptr<Collective> plan(CollectiveSpec spec, bool often = true, const Tensor* mine = nullptr);
  /// Every rank's `block`, of the same length, becomes what `merge` makes of them all: see TreeMerge. For Ronda's own
  /// rooms; not compared.
  [[nodiscard]] std::unique_ptr<Collective> plan_merge(std::span<std::byte> block, TreeMerge::Merge merge,
                                                       std::string_view label);
  void allreduce_now(const Tensor& tensor, ReduceOp op);  ///< without looking whether all give the same
  [[nodiscard]] KeptAllreduces& kept() noexcept { return kept_; }
  void barrier();
  [[nodiscard]] std::shared_ptr<Group> split(int color, int key);

 private:
  [[nodiscard]] SpecContext context() const;
  void require_matching(const AlltoallSpec& spec);

  std::shared_ptr<Members> members_;
  Agreement agreement_;
  Links links_;
  NodeMemory memory_;
  HostBackend host_;
  std::unique_ptr<GroupDevices> devices_;
  KeptAllreduces kept_;
};

}  // namespace ronda
