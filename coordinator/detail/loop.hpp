#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <ronda/coordinator/detail/custody.hpp>
#include <ronda/coordinator/detail/fusion.hpp>
#include <ronda/coordinator/detail/in_flight.hpp>
#include <ronda/coordinator/detail/link.hpp>
#include <ronda/coordinator/detail/missing.hpp>
#include <ronda/coordinator/detail/name_table.hpp>
#include <ronda/coordinator/detail/pace.hpp>
#include <ronda/coordinator/detail/submission.hpp>
#include <ronda/coordinator/detail/tuner.hpp>

namespace ronda {

/// The inside of a coordinator: what it does, cycle by cycle, always together with the other ranks'. `step` does what
/// is due; the coordinator's thread calls it, by `run`.
///
/// In a cycle the ranks find what all of them have submitted, by one small reduction of bits: a flags word, a word of
/// settings from rank 0, and a bit for each name of the table. What is ready is reduced. Only where the flags say that
/// some rank has something new (a name, another shape, `join`), more is exchanged; in a steady state nothing is.
///
/// Groups that were split off have loops of their own, which take their turn after this one's, in the order in which
/// they were made: the same on all ranks, so that none waits for another in a circle.
///
/// Source of the scheme: Sergeev and Del Balso, "Horovod: fast and easy distributed deep learning in TensorFlow", 2018.
class CoordinatorLoop : public FrameOwner {
 public:
  struct Options {
    CycleTuner::Limits tuning;
    double missing_warning = 60, missing_limit = 0;  ///< seconds; 0: never
    std::function<void(const std::string&)> on_warning;
    bool print_warnings = false;  ///< by the first rank
  };
  /// What has been done so far; may be read by any thread.
  struct Counters {
    std::atomic<std::uint64_t> cycles{0}, busy_cycles{0}, announcements{0}, submissions{0}, bytes{0}, batches{0};
    std::atomic<std::uint64_t> batch_bytes{0}, gather_microseconds{0};  ///< settings in force
    std::atomic<std::uint64_t> agreeing_nanoseconds{0}, reducing_nanoseconds{0};
  };

  CoordinatorLoop(std::unique_ptr<CoordinatorLink> link, Options options, std::shared_ptr<Bell> bell,
                  std::shared_ptr<Custody> custody = std::make_shared<Custody>());

  [[nodiscard]] SubmissionDesk& desk() noexcept { return desk_; }
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }

  /// What a step leaves to wait for.
  struct Next {
    bool over = false;                   ///< all ranks have closed, or something has failed
    LinkOperation* operation = nullptr;  ///< in flight; null: the next cycle, as follows
    double at = 0;                       ///< when it begins, at the latest
    bool listens = false;                ///< it begins earlier if the bell rings
  };
  /// Does what is due at `now`, without waiting for what the other ranks have not done; only a split and the first
  /// batch of a kind wait for them. If something fails, everything that is in flight fails with it.
  Next step(double now) noexcept;
  /// Steps until it is over, and waits in between. For a thread.
  void run() noexcept;
  /// From another thread than that of `step`, which may stand still in a call: everything that is in flight, and all
  /// that comes later, fails with `error`; no tensor is touched any more. Of the first coordinator, with all groups
  /// inside.
  void give_up(const std::exception_ptr& error) noexcept;

 private:
  [[nodiscard]] Next move(double now);
  [[nodiscard]] Task cycle();
  void hang_up() noexcept;
  [[nodiscard]] bool has_work() const noexcept;

  void take_arrivals();
  [[nodiscard]] std::uint64_t flags();
  void begin_agreeing(std::uint64_t flags);
  [[nodiscard]] std::uint64_t end_agreeing();
  [[nodiscard]] std::span<const std::uint64_t> ready_everywhere() const noexcept;
  [[nodiscard]] std::uint64_t begin_reducing();
  [[nodiscard]] double end_reducing(std::uint64_t ended, std::size_t bytes_before);
  void reduce(std::uint32_t id);
  void make_group(Submission& submission);
  [[nodiscard]] std::optional<Announcement> write_announcements(bool large);
  bool hear_announcements(const std::optional<Announcement>& word);
  bool apply(const NameTable::Changes& changes);
  void fail_if_closed();
  void tune(double work);
  void warn(const std::string& text);
  void tell_notes();
  void fail(const std::exception_ptr& error) noexcept;

  std::shared_ptr<Custody> custody_;
  std::unique_ptr<CoordinatorLink> link_;
  Options options_;
  std::shared_ptr<Bell> bell_;
  SubmissionDesk desk_;
  const int rank_, size_;
  NameTable table_;
  InFlight in_flight_;
  MissingRanks missing_;
  TensorFusion fusion_;
  CycleTuner tuner_;
  CycleSettings settings_;  ///< rank 0's
  CyclePace pace_;
  Counters counters_;

  const Clock& clock_;
  bool over_ = false;                 ///< the last cycle is over
  double began_ = 0;                  ///< when the ranks began to agree, or to reduce
  std::vector<std::uint64_t> words_;  ///< what a cycle exchanges
  std::vector<std::byte> block_;      ///< of announcements
  bool left_out_ = false;  ///< of the last announcements, which have to be made in a large block: the same on all ranks
  double busy_since_ = 0;  ///< when there was something to do, or was done
  std::set<std::string> told_notes_;
  std::vector<std::shared_ptr<CoordinatorLoop>> groups_;
  std::optional<Task> cycle_;  ///< last: it uses all of the above
};

}  // namespace ronda
