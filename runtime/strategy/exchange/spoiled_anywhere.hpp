#pragma once
#include <cstddef>
#include <memory>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/optim/updater.hpp>

namespace ronda {

/// Whether an update was spoiled on any of some ranks (UpdateOutcome::spoiled), where each has updated a part.
class SpoiledAnywhere {
 public:
  /// Collective over `ranks`.
  explicit SpoiledAnywhere(Communicator& ranks);

  /// Tells all of this rank's update. Allocates nothing. Collective.
  [[nodiscard]] Event start(const UpdateOutcome& outcome, Stream& stream);
  /// When that is done: `outcome` tells of all.
  void set(UpdateOutcome* outcome) const noexcept;
  [[nodiscard]] std::size_t memory() const noexcept { return any_->memory(); }

 private:
  [[nodiscard]] float& flag() const noexcept { return *reinterpret_cast<float*>(flag_.data()); }

  Buffer flag_;
  std::unique_ptr<Collective> any_;
};

}  // namespace ronda
