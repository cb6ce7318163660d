#pragma once
#include <memory>

#include <ronda/collectives/members/backend.hpp>
#include <ronda/collectives/members/members.hpp>
#include <ronda/collectives/nccl/clique.hpp>

namespace ronda::nccl {

/// Collectives of tensors on the ranks' GPUs, by NCCL. What NCCL does in another way than Ronda promises goes through
/// the host.
class NcclBackend final : public Backend {
 public:
  /// @param staged  outlives this object
  NcclBackend(std::shared_ptr<Members> members, std::shared_ptr<Clique> clique, Backend& staged)
      : members_(std::move(members)), clique_(std::move(clique)), staged_(staged) {}

  [[nodiscard]] std::unique_ptr<Collective> plan(const CollectiveSpec& spec, bool often) override;

 private:
  [[nodiscard]] std::unique_ptr<Collective> planned(const AllreduceSpec& spec, bool often);

  std::shared_ptr<Members> members_;
  std::shared_ptr<Clique> clique_;
  Backend& staged_;
};

}  // namespace ronda::nccl
