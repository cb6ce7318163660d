#pragma once
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/nccl/lanes.hpp>
#include <ronda/core/buffer.hpp>

namespace ronda {

/// A collective on a device's memory, done in the host's: for GPUs that nothing connects directly.
///
/// It works on *pieces*. Each is copied to the host, dealt with there by an algorithm for the host's memory, and copied
/// back. All copies to the host are queued at once, so that the device's copy engines and the ranks' messages work
/// beside each other; pieces 1, 2, 3:
///
///     to the host     1 2 3
///     algorithm         1 2 3
///     to the device       1 2 3
///
/// Cost: that of the algorithm, of the copy of the first piece to the host, and of the last one back.
class Staged final : public Algorithm {
 public:
  /// Bytes of the device, and where they are on the host.
  struct Stretch {
    std::byte* device = nullptr;
    std::span<std::byte> host = {};
  };
  struct Piece {
    std::optional<Stretch> out;            ///< copied to the host before
    std::unique_ptr<Algorithm> algorithm;  ///< null: nothing to do
    std::vector<Stretch> back;             ///< copied to the device after
  };

  /// @param staging  where the stretches are on the host; pinned here where the system lets it
  /// @param note     why it does not; unchanged otherwise
  Staged(std::shared_ptr<DeviceLanes> lanes, Buffer staging, std::vector<Piece> pieces, std::string& note);
  Staged(const Staged&) = delete;
  /// Waits for copies that a failed run has left on their way: they use the memory that goes with this object.
  ~Staged() override;

  Task run() override;
  void visit_traffic(const std::function<void(Traffic&)>& visit) override;
  void prepare() override;
  void visit(const std::string& name, StateVisitor& visitor) override;
  [[nodiscard]] std::size_t memory() const noexcept override;

 private:
  /// What a device does, for a coroutine to wait for.
  class Arrival final : public Awaitable {
   public:
    explicit Arrival(const Event& event) : event_(event) {}
    bool arrived() noexcept override;
    void finish() override;

   private:
    Event event_;
    std::exception_ptr error_;
  };

  std::shared_ptr<DeviceLanes> lanes_;
  Buffer staging_;
  std::shared_ptr<const void> pinned_;
  std::vector<Piece> pieces_;
  std::vector<Event> here_;  ///< by piece: it has come to the host
};

}  // namespace ronda
