#pragma once
#include <memory>
#include <string_view>

#include <ronda/collectives/fabric/fabric.hpp>
#include <ronda/collectives/fabric/threads/thread_network.hpp>

namespace ronda {

/// A world whose ranks are threads of this process, on one host.
class ThreadFabric final : public Fabric {
 public:
  /// @param rank   the one whose thread uses this object
  /// @param clock  outlives the world
  ThreadFabric(std::shared_ptr<ThreadNetwork> network, int rank, const Clock& clock = steady_clock());

  [[nodiscard]] std::string_view name() const noexcept override { return "threads"; }
  [[nodiscard]] const Roster& roster() const noexcept override { return roster_; }
  [[nodiscard]] std::unique_ptr<FabricTransport> open(Ranks ranks, FabricChannel channel) override {
    return network_->open(roster_.self, std::move(ranks), std::move(channel));
  }
  [[nodiscard]] Turn& turn() noexcept override { return turn_; }
  [[nodiscard]] bool takes_any_thread(bool /*promised*/) const override { return true; }
  [[nodiscard]] const Clock& clock() const noexcept override { return clock_; }
  void abort(int /*status*/) noexcept override {}  // the end of this process ends all ranks

 private:
  std::shared_ptr<ThreadNetwork> network_;
  const Clock& clock_;
  Roster roster_;
  Turn turn_;
};

}  // namespace ronda
