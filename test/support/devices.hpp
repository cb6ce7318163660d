#pragma once
#include <memory>
#include <string>
#include <utility>

#include <ronda/collectives/group/group.hpp>

#include "support/fake_device.hpp"
#include "support/fake_nccl.hpp"
#include "support/shared_meeting.hpp"

namespace ronda::test {

/// A device that is a thread for every rank of a group, and a way between them: through the host's memory, or by NCCL's
/// stand-in, which works in the order of the device's streams.
struct Devices {
  /// Collective. A group of the same ranks as `ranks`.
  Devices(const Communicator& ranks, AllreduceAlgorithm way) : Devices(way, ranks.split(0, ranks.rank())) {}
  /// Collective. This very group, whatever devices it had before.
  Devices(AllreduceAlgorithm way, Communicator group)
      : device(std::make_shared<FakeDevice>("GPU-" + std::to_string(group.rank()))), communicator(std::move(group)) {
    if (way == AllreduceAlgorithm::nccl) {
      const auto meeting = std::make_shared<SharedMeeting>(communicator);
      nccl = std::make_shared<FakeNccl>([meeting](std::string_view text) { return meeting->gather(text); }, device);
      nccl->when_aborted = [meeting] { meeting->abandon(); };
    }
    communicator.group().use_device(device, way, nccl);
  }

  std::shared_ptr<FakeDevice> device;
  std::shared_ptr<FakeNccl> nccl;  ///< null where the host is the way
  Communicator communicator;
};

}  // namespace ronda::test
