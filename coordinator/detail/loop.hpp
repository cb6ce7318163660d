#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <ronda/coordinator/detail/custody.hpp>
#include <ronda/coordinator/detail/fusion.hpp>
#include <ronda/coordinator/detail/link.hpp>
#include <ronda/coordinator/detail/name_table.hpp>
#include <ronda/coordinator/detail/submission.hpp>
#include <ronda/coordinator/detail/tuner.hpp>

namespace ronda {

/// The inside of a coordinator: what its thread does, cycle by cycle, always together with the other ranks'.
///
/// In a cycle the ranks find what all of them have submitted, by one small reduction of bits: a flags word, a word of
/// settings from rank 0, and a bit for each name of the table. What is ready is reduced. Only where the flags say that
/// some rank has something new (a name, another shape, `join`), more is exchanged; in a steady state nothing is.
///
/// Groups that were split off have loops of their own, which take their turn after this one's, in the order in which
/// they were made: the same on all ranks, so that none waits for another in a circle.
///
/// Source of the scheme: Sergeev and Del Balso, "Horovod: fast and easy distributed deep learning in TensorFlow", 2018.
class CoordinatorLoop {
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

  /// Goes round until all ranks have closed, or something fails: then everything that is in flight fails with it.
  void run() noexcept;
  /// From another thread than that of `run`, which may stand still in a call: everything that is in flight, and all
  /// that comes later, fails with `error`; no tensor is touched any more. Of the first coordinator, with all groups
  /// inside.
  void give_up(const std::exception_ptr& error) noexcept;

 private:
  /// How a cycle went, for the pace of the next.
  enum class Progress : std::uint8_t { some, none_while_others_rest, none };

  /// What waits for other ranks.
  enum class Lateness : std::uint8_t { in_time, worth_a_warning, over_the_limit };
  /// What is late on any rank: the same on all of them.
  struct Late {
    std::vector<std::uint64_t> warn, give_up;  ///< a bit by id
    Lateness word = Lateness::in_time;         ///< of ranks that have said that they join or close
  };

  bool cycle();
  void hang_up() noexcept;
  void pace();
  [[nodiscard]] bool has_work() const noexcept;

  void take_arrivals();
  void sort_out();
  [[nodiscard]] bool is_ready(Submission& submission);
  [[nodiscard]] bool must_announce(const Submission& submission) const;
  [[nodiscard]] std::uint64_t flags();
  void agree(std::uint64_t flags);
  void reduce_ready();
  void make_group(Submission& submission);
  bool exchange_announcements(bool large);
  void word_was_heard(Announcement::What what);
  bool apply(const NameTable::Changes& changes);
  void fail_waiting(std::string_view name, const std::string& text);
  void fail_if_closed();
  void fail_all_in_flight(const std::string& text);
  [[nodiscard]] double waiting_for_warning(std::uint32_t warnings) const;
  [[nodiscard]] Lateness lateness(double since, std::uint32_t warnings, double now) const;
  [[nodiscard]] Lateness lateness(const Submission& submission, double now) const;
  [[nodiscard]] Lateness lateness_of_word(double now) const;
  [[nodiscard]] std::uint32_t warnings_of(std::uint32_t id) const;
  [[nodiscard]] bool overdue(double now);
  [[nodiscard]] std::vector<Submission*> submissions_by_id();
  [[nodiscard]] Late agree_on_late(std::span<Submission* const> of_id, double now);
  [[nodiscard]] std::map<std::uint32_t, RankSet> find_who_has(std::span<const std::uint32_t> ids,
                                                              std::span<Submission* const> of_id);
  bool report_missing(double now);
  bool tell_word_missing(bool give_up);
  void tell_missing(std::uint32_t id, Submission* submission, const RankSet& have, const RankSet& missing,
                    bool give_up);
  void abandon(std::uint32_t id, Submission* submission, const std::string& why);
  bool fail_given_up(Submission& submission);
  void tune(bool worked);
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
  TensorFusion fusion_;
  CycleTuner tuner_;
  CycleSettings settings_;
  Counters counters_;

  std::vector<Submission*> arrived_;      ///< just taken
  std::vector<Submission*> waiting_;      ///< taken, and without a bit
  std::vector<Submission*> unannounced_;  ///< of these: what the others must hear of
  std::vector<std::uint64_t> ready_;      ///< a bit by id: this rank has it
  std::vector<Submission*> by_id_;        ///< whose bits these are
  std::vector<std::uint64_t> words_;      ///< what a cycle exchanges
  std::size_t in_flight_ = 0;
  std::uint64_t agreed_flags_ = 0;
  Progress progress_ = Progress::some;
  double backoff_ = 0, checked_overdue_ = 0, busy_since_ = 0;
  double word_since_ = 0;  ///< when this rank said that it joins or closes, or anything was reduced after that
  std::uint32_t word_warnings_ = 0;  ///< since any rank said that, or anything was reduced: the same on all ranks
  bool left_out_ = false;            ///< of the last announcements, which have to be made in a large block: likewise
  double work_ = 0;                  ///< of this cycle
  /// What the others have given up while this rank did not have it, by id: it fails here when it comes.
  struct GivenUp {
    std::uint64_t times = 0;
    std::string why;  ///< the last time
  };
  std::map<std::uint32_t, GivenUp> given_up_;
  /// How often all ranks have been warned of what is in flight, by id: the same on all of them.
  std::map<std::uint32_t, std::uint32_t> warnings_;
  std::set<std::string> told_notes_;
  std::vector<std::byte> block_;  ///< of announcements
  std::vector<std::shared_ptr<CoordinatorLoop>> groups_;
};

}  // namespace ronda
