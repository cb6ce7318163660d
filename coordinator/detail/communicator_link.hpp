#pragma once
#include <array>
#include <exception>
#include <map>
#include <memory>
#include <tuple>

#include <ronda/collectives/communicator.hpp>
#include <ronda/coordinator/detail/link.hpp>

namespace ronda {

/// A coordinator's link over a communicator. What every cycle needs is planned once; what a batch needs is planned for
/// its operation, type and size class when the first of that class comes, on all ranks at the same point, and kept.
class CommunicatorLink final : public CoordinatorLink {
 public:
  /// Collective. @param stage_bytes  of each stage; a power of two
  CommunicatorLink(Communicator communicator, std::size_t stage_bytes);

  [[nodiscard]] int rank() const noexcept override { return communicator_.rank(); }
  [[nodiscard]] int size() const noexcept override { return communicator_.size(); }
  [[nodiscard]] std::string name_of_rank(int rank) const override;
  [[nodiscard]] const Clock& clock() const noexcept override { return communicator_.clock(); }
  [[nodiscard]] LinkOperation& intersect(std::span<std::uint64_t> words, bool eager) override;
  [[nodiscard]] LinkOperation& merge(std::span<std::byte> block) override;
  [[nodiscard]] std::span<std::byte> stage(int index) override;
  void start(int stage, ReduceOp op, DType dtype, std::size_t bytes) override;
  [[nodiscard]] LinkOperation& reduction(int stage) override { return reducing_[static_cast<std::size_t>(stage)]; }
  [[nodiscard]] std::vector<Message> take_notes() override { return communicator_.take_notes(); }
  std::unique_ptr<CoordinatorLink> split(int color, int key) override;

  /// What batches of `bytes` are rounded up to: eight classes for each doubling.
  [[nodiscard]] static std::size_t size_class(std::size_t bytes) noexcept;

 private:
  /// A planned collective that was started.
  class Operation final : public LinkOperation {
   public:
    void begin(const Event& event) noexcept;
    /// @param result  is copied to `to` at the end
    void begin(const Event& event, const Buffer& result, std::span<std::byte> to) noexcept;
    /// Waits without taking the core from those who compute, since the others may come much later, when they have
    /// something to submit. Not `eager`: sleeps at once.
    void wait_gently(bool eager, const Clock& clock) noexcept;

    bool arrived() noexcept override;
    void finish() override;
    void wait() noexcept override;

   private:
    [[nodiscard]] bool arrives_gently() noexcept;

    Event event_;
    std::exception_ptr error_;
    const std::byte* result_ = nullptr;
    std::span<std::byte> to_;
    const Clock* gentle_by_ = nullptr;  ///< null: waits in the engine at once
    bool eager_ = false;
  };
  static constexpr std::array<std::size_t, 3> word_counts{32, 128, 1100};

  Communicator communicator_;
  std::size_t stage_bytes_;
  Buffer words_, block_;
  std::array<Buffer, stages> stages_;
  std::array<std::unique_ptr<Collective>, word_counts.size()> intersections_;
  std::unique_ptr<Collective> small_merge_, large_merge_;
  std::map<std::tuple<int, ReduceOp, DType, std::size_t>, std::unique_ptr<Collective>> reductions_;
  Operation agreeing_;  ///< of an intersection or a merge
  std::array<Operation, stages> reducing_;
};

}  // namespace ronda
