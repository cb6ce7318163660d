#pragma once
#include <memory>
#include <string>
#include <vector>

#include <ronda/collectives/nccl/clique.hpp>
#include <ronda/collectives/nccl/nccl_backend.hpp>
#include <ronda/collectives/nccl/nccl_library.hpp>
#include <ronda/collectives/staged/staged_backend.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/message.hpp>

namespace ronda {

/// The devices of a group's ranks, one each, and what does collectives on them: NCCL where it can connect them, and
/// otherwise the host.
class GroupDevices {
 public:
  /// What a group is made of.
  struct Parts {
    std::shared_ptr<Members> members;
    Agreement& agreement;
    Links& links;
    NodeMemory& memory;
    HostBackend& host;
  };
  /// Collective. The parts of `group` outlive this object. See Communicator::use_device for `wanted` and errors.
  /// @param library  null: a program without NCCL
  GroupDevices(const Parts& group, std::shared_ptr<DeviceContext> context, AllreduceAlgorithm wanted,
               const std::shared_ptr<nccl::Library>& library);
  GroupDevices(const GroupDevices&) = delete;

  [[nodiscard]] Backend& backend() noexcept { return *backend_; }
  /// This rank's.
  [[nodiscard]] Device device() const noexcept { return lanes_->context->device(); }
  /// A line a rank: see Communicator::devices.
  [[nodiscard]] const std::vector<std::string>& lines() const noexcept { return lines_; }
  /// Zeroed memory of this rank's device, known to what reduces it. Collective.
  [[nodiscard]] Buffer allocate(std::size_t bytes);
  [[nodiscard]] std::unique_ptr<Recording> watched(std::unique_ptr<Recording> recording, const std::string& what) const;
  void require_whole() const;

 private:
  void connect(AllreduceAlgorithm wanted, const std::shared_ptr<nccl::Library>& library);
  [[nodiscard]] Message nccl_refusal(AllreduceAlgorithm wanted, const std::shared_ptr<nccl::Library>& library);

  Parts group_;
  std::shared_ptr<DeviceLanes> lanes_;
  std::shared_ptr<nccl::Clique> clique_;  ///< null: through the host
  Message refusal_;                       ///< why not by NCCL
  std::unique_ptr<StagedBackend> staged_;
  std::unique_ptr<nccl::NcclBackend> nccl_;
  Backend* backend_ = nullptr;
  std::vector<std::string> lines_;
};

}  // namespace ronda
