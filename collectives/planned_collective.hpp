#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/algorithm.hpp>
#include <ronda/collectives/collective.hpp>
#include <ronda/collectives/engine.hpp>

namespace ronda {

/// A planned collective as the engine runs it: one algorithm for each of its tensors, all under way at once, done when
/// all are. Without any (a single rank) it is done as soon as it is started.
class PlannedCollective final : public Collective {
 public:
  /// @param compression  what it says of itself
  /// @param hosts   by rank, for messages
  /// @param keeper  what the algorithms use and must live as long as this object
  PlannedCollective(std::shared_ptr<Engine> engine, std::vector<std::unique_ptr<Algorithm>> algorithms,
                    std::string_view name, std::string label, std::span<const std::string> hosts,
                    std::shared_ptr<const void> keeper, Compression compression = Compression::none);
  ~PlannedCollective() override;

  Event start(const Event& ready = {}) override;
  bool poll(std::uint64_t ticket) override;
  void wait(std::uint64_t ticket) override;
  [[nodiscard]] std::string_view algorithm() const noexcept override { return name_; }
  [[nodiscard]] Compression compression() const noexcept override { return compression_; }
  [[nodiscard]] std::size_t memory() const noexcept override;
  void visit(StateVisitor& visitor) override;

  [[nodiscard]] bool finished(std::uint64_t ticket) const noexcept {
    return finished_.load(std::memory_order_acquire) >= ticket;
  }

 private:
  friend class Engine;
  [[nodiscard]] bool blocking() const noexcept { return blocking_; }
  bool advance() noexcept;
  /// Ends the run under way, which has stood still for so long, with an error that names who has not come.
  void give_up(double seconds) noexcept;
  [[nodiscard]] std::string overdue(double seconds) const;
  [[nodiscard]] bool run_is_over() const noexcept { return tasks_.empty(); }
  void announce() noexcept;
  void wait_for_other_thread(std::uint64_t ticket) const noexcept;

  std::shared_ptr<const void> keeper_;
  std::shared_ptr<Engine> engine_;
  std::vector<std::unique_ptr<Algorithm>> algorithms_;
  std::vector<Task> tasks_;  ///< of the run under way; those that are done are taken out
  std::string name_, label_;
  std::span<const std::string> hosts_;  ///< the keeper's
  Compression compression_;
  bool blocking_ = false;
  Event ready_;
  bool waiting_for_ready_ = false;
  std::uint64_t started_ = 0;
  std::atomic<std::uint64_t> finished_{0};  ///< what the engine wrote before is seen by who reads it
  std::exception_ptr failure_;              ///< sticky
  PlannedCollective* next_ = nullptr;       ///< in the engine's queue
};

}  // namespace ronda
