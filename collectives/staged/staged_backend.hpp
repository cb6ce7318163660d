#pragma once
#include <memory>
#include <string>
#include <vector>

#include <ronda/collectives/host/planning/host_backend.hpp>
#include <ronda/collectives/nccl/lanes.hpp>
#include <ronda/collectives/staged/staged.hpp>
#include <ronda/core/message.hpp>

namespace ronda {

/// Collectives of tensors on the ranks' devices, done in the host's memory: see Staged.
class StagedBackend final : public Backend {
 public:
  /// @param members, links, memory, host  outlive this object
  /// @param refusal                       why not by NCCL, for who asks for it
  StagedBackend(Members& members, Links& links, NodeMemory& memory, HostBackend& host,
                std::shared_ptr<DeviceLanes> lanes, Message refusal)
      : members_(members),
        links_(links),
        memory_(memory),
        host_(host),
        lanes_(std::move(lanes)),
        refusal_(std::move(refusal)) {}

  [[nodiscard]] std::unique_ptr<Collective> plan(const CollectiveSpec& spec, bool often) override;

 private:
  [[nodiscard]] std::unique_ptr<Collective> planned(const AllreduceSpec& spec, bool often);
  [[nodiscard]] std::unique_ptr<Collective> planned(const BroadcastSpec& spec);
  [[nodiscard]] std::unique_ptr<Collective> planned(const AllgatherSpec& spec);
  [[nodiscard]] std::unique_ptr<Collective> planned(const ReduceScatterSpec& spec);
  template <class Make>
  [[nodiscard]] std::unique_ptr<Collective> in_one_piece(const Tensor& tensor, Range out, Range back,
                                                         const Description& description, Make&& make);
  [[nodiscard]] std::unique_ptr<Collective> run(Buffer staging, std::vector<Staged::Piece> pieces,
                                                const Description& description,
                                                Compression compression = Compression::none);

  Members& members_;
  Links& links_;
  NodeMemory& memory_;
  HostBackend& host_;
  std::shared_ptr<DeviceLanes> lanes_;
  Message refusal_;
  std::string last_note_;  ///< why memory could not be pinned: told once
};

}  // namespace ronda
