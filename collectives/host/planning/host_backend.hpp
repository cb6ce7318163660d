#pragma once
#include <map>
#include <memory>
#include <span>
#include <string_view>

#include <ronda/collectives/host/planning/allreduce_planner.hpp>
#include <ronda/collectives/host/planning/pair_message.hpp>
#include <ronda/collectives/members/backend.hpp>

namespace ronda {

/// Collectives in the host's memory: along a tree what is short, in pieces over all links what is long.
class HostBackend final : public Backend {
 public:
  /// @param members, agreement, links, memory  outlive this object
  HostBackend(Members& members, Agreement& agreement, Links& links, NodeMemory& memory)
      : members_(members), links_(links), memory_(memory), allreduces_(members, agreement, links, memory) {}

  [[nodiscard]] std::unique_ptr<Collective> plan(const CollectiveSpec& spec, bool often) override;

  [[nodiscard]] AllreducePlanner& allreduces() noexcept { return allreduces_; }

  /// An algorithm, and its name.
  struct Made {
    std::unique_ptr<Algorithm> algorithm;
    std::string_view name;
  };
  /// @param data  bytes
  [[nodiscard]] Made make_broadcast(const Elements& data, int root);

 private:
  [[nodiscard]] std::unique_ptr<Collective> planned(const AllreduceSpec& spec, bool often);
  [[nodiscard]] std::unique_ptr<Collective> planned(const BroadcastSpec& spec, bool often);
  [[nodiscard]] std::unique_ptr<Collective> planned(const ReduceSpec& spec, bool often);
  [[nodiscard]] std::unique_ptr<Collective> planned(const ReduceScatterSpec& spec, bool often);
  [[nodiscard]] std::unique_ptr<Collective> planned(const AllgatherSpec& spec, bool often);
  [[nodiscard]] std::unique_ptr<Collective> planned(const GatherSpec& spec, bool often);
  [[nodiscard]] std::unique_ptr<Collective> planned(const ScatterSpec& spec, bool often);
  [[nodiscard]] std::unique_ptr<Collective> planned(const AlltoallSpec& spec, bool often);
  [[nodiscard]] std::unique_ptr<Collective> planned(const SendSpec& spec, bool often);
  [[nodiscard]] std::unique_ptr<Collective> planned(const ReceiveSpec& spec, bool often);
  [[nodiscard]] std::unique_ptr<Collective> planned(const SparseAllreduceSpec& spec, bool often);
  /// @param name  becomes the algorithm's
  [[nodiscard]] std::unique_ptr<Algorithm> make_reduce(const Elements& data, const Reduction& reduction, int root,
                                                       std::string_view& name);
  [[nodiscard]] Made make_sparse_allreduce(const SparseAllreduceSpec& spec);
  [[nodiscard]] std::unique_ptr<Algorithm> to_and_from_root(std::span<const std::span<std::byte>> parts,
                                                            std::span<std::byte> mine, int root, bool gathers);
  template <class Spec>
  [[nodiscard]] std::unique_ptr<Collective> planned_at_root(const Spec& spec, bool gathers);
  using PairSequences = std::map<int, std::shared_ptr<PairSequence>>;  ///< by the other rank
  [[nodiscard]] std::unique_ptr<Collective> planned_pair(Kind kind, const Tensor& tensor, int peer,
                                                         const std::string& label, PairSequences& sequences);

  Members& members_;
  Links& links_;
  NodeMemory& memory_;
  AllreducePlanner allreduces_;
  PairSequences sent_, received_;
};

}  // namespace ronda
