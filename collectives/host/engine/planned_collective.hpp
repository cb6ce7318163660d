#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <ronda/collectives/collective.hpp>
#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/engine/engine.hpp>
#include <ronda/collectives/watch/recorder.hpp>

namespace ronda {

/// A planned collective as the engine runs it: one algorithm for each of its tensors, all under way at once, done when
/// all are. Without any (a single rank) it is done as soon as it may start.
///
/// A run that fails or is given up ends when MPI uses no memory of its any more; or, where other ranks do not take what
/// they were sent, when these know that they must not: see Engine.
class PlannedCollective final : public Collective {
 public:
  /// @param name         what it is done by
  /// @param ledger       the keeper's: where its runs are written down
  /// @param keeper       what the algorithms use and must live as long as this object
  /// @param compression  what it says of itself
  PlannedCollective(std::shared_ptr<Engine> engine, std::vector<std::unique_ptr<Algorithm>> algorithms,
                    std::string_view name, const Description& description, Ledger& ledger,
                    std::shared_ptr<const void> keeper, Compression compression = Compression::none);
  ~PlannedCollective() override = default;
  /// One that is given up half way may have to stay where it is, and what it uses with it: see Engine::withdraw.
  static void operator delete(PlannedCollective* self, std::destroying_delete_t) noexcept;
  /// Of one whose constructor throws.
  static void operator delete(void* memory, std::align_val_t alignment) noexcept {
    ::operator delete(memory, alignment);
  }

  Event start(const Event& ready = {}) override;
  bool poll(std::uint64_t ticket) override;
  void wait(std::uint64_t ticket) override;
  [[nodiscard]] bool moves_alone() const noexcept override { return algorithms_.empty(); }
  [[nodiscard]] std::string_view algorithm() const noexcept override { return name_; }
  [[nodiscard]] Compression compression() const noexcept override { return compression_; }
  [[nodiscard]] std::size_t memory() const noexcept override;
  [[nodiscard]] std::uint64_t sent_bytes() const noexcept override;
  void visit(StateVisitor& visitor) override;
  [[nodiscard]] CollectiveTimes times() const noexcept override;
  /// What the model has for it.
  void expect(std::optional<double> seconds) noexcept { times_.predicted = seconds; }
  void flush_denormals(bool flush) noexcept { flushes_denormals_ = flush; }  ///< before it is started

  [[nodiscard]] bool finished(std::uint64_t ticket) const noexcept {
    return finished_.load(std::memory_order_acquire) >= ticket;
  }

 private:
  friend class Engine;
  [[nodiscard]] const std::string& label() const noexcept { return description_.label; }
  [[nodiscard]] bool in_order() const noexcept { return in_order_; }
  [[nodiscard]] bool is_of_the_group_of(const PlannedCollective& other) const noexcept {
    return &ledger_ == &other.ledger_;
  }
  bool advance() noexcept;
  /// Where the task and the thread treat denormal numbers differently.
  bool advance_in_scope(Task& task) const;
  /// True where it waits for other ranks, not for this one's own work.
  [[nodiscard]] bool waits_for_others() const noexcept { return !waiting_for_ready_; }
  [[nodiscard]] std::vector<int> missing() const;
  [[nodiscard]] bool failed() const noexcept { return failure_ != nullptr; }
  /// Ends the run under way with an error, which there is none of where nobody is left to hear it; `advance` sees to
  /// what it has under way.
  void give_up(std::exception_ptr failure) noexcept;
  /// It is done, but its result must not be used.
  void spoil(const std::string& reason) noexcept;
  [[nodiscard]] Traffic::Open open() noexcept;
  [[nodiscard]] bool run_is_over() const noexcept { return tasks_.empty() && (!failed() || quiet_); }
  void announce() noexcept;
  /// Looking at the clock takes as long as a brief one's messages: that is done now and then.
  [[nodiscard]] bool timed() const noexcept { return !description_.brief || started_ % 16 == 1; }
  bool settle() noexcept;
  /// Gives away the algorithms whose memory MPI still uses. No run can follow.
  void give_back(std::vector<std::unique_ptr<Algorithm>>& algorithms) noexcept;

  std::shared_ptr<const void> keeper_;
  std::shared_ptr<Engine> engine_;
  std::vector<std::unique_ptr<Algorithm>> algorithms_;
  std::vector<Task> tasks_;            ///< of the run under way; those that are done are taken out
  PlannedCollective* next_ = nullptr;  ///< in the engine's queue
  std::exception_ptr failure_;         ///< sticky
  bool quiet_ = false;                 ///< failed, and has nothing under way that anybody waits for
  std::string name_;
  Description description_;
  Ledger& ledger_;
  std::uint64_t record_ = 0;  ///< of the run under way
  Compression compression_;
  bool in_order_ = false, flushes_denormals_ = false;
  Event ready_;
  bool waiting_for_ready_ = false;
  double began_ = 0;
  CollectiveTimes times_;  ///< of the runs that were timed; the engine's while a run is under way
  std::uint64_t started_ = 0;
  std::atomic<std::uint64_t> finished_{0};  ///< what the engine wrote before is seen by who reads it
  double failed_at_ = 0;
};

/// What an algorithm has under way.
[[nodiscard]] Traffic::Open open_of(Algorithm& algorithm) noexcept;

}  // namespace ronda
