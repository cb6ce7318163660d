#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/coordinator/detail/in_flight.hpp>
#include <ronda/coordinator/detail/link.hpp>
#include <ronda/coordinator/detail/name_table.hpp>

namespace ronda {

/// What some ranks wait for and others have not submitted: warns after a while, and gives it up after a limit, on all
/// ranks together. The same for ranks that have said that they join or close.
class MissingRanks : public FrameOwner {
 public:
  struct Options {
    double warning = 60, limit = 0;  ///< seconds; 0: never
  };
  /// All that is given outlives this object. `warn` may take its time.
  MissingRanks(const Options& options, CoordinatorLink& link, NameTable& table, InFlight& in_flight,
               std::function<void(const std::string&)> warn);

  /// Whether something of this rank's is late. Looks at most every 50 ms.
  [[nodiscard]] bool overdue(double now);
  /// All ranks find out what is late anywhere and who has it; warn, or give it up. Collective.
  [[nodiscard]] Task report(double now);
  /// Why all has to end, as the last report found, on all ranks; null: it goes on.
  [[nodiscard]] const std::optional<std::string>& end() const noexcept { return end_; }
  /// Whether the others have given this one up before it came: then it has failed.
  [[nodiscard]] bool fail_given_up(Submission& submission);

  // What has happened meanwhile.

  void something_was_reduced(double now);
  /// The name is late no longer.
  void forget(std::uint32_t id);
  void forget_all() { warnings_.clear(); }
  /// All ranks have heard this rank's word.
  void own_word_was_heard(Announcement::What what, double now);
  /// Some rank has said that it joins or closes.
  void word_was_heard() { word_warnings_ = 0; }

 private:
  enum class Lateness : std::uint8_t { in_time, worth_a_warning, over_the_limit };
  /// What is late on any rank: the same on all of them.
  struct Late {
    std::vector<std::uint64_t> warn, give_up;  ///< a bit by id
    Lateness word = Lateness::in_time;         ///< of ranks that have said that they join or close
    /// From what all ranks have in common.
    [[nodiscard]] static Late of(std::vector<std::uint64_t> not_warned, std::vector<std::uint64_t> not_given_up);
  };
  /// What the others have given up while this rank did not have it: it fails here when it comes.
  struct GivenUp {
    std::uint64_t times = 0;
    std::string why;  ///< the last time
  };

  [[nodiscard]] double waiting_for_warning(std::uint32_t warnings) const;
  [[nodiscard]] Lateness lateness(double since, std::uint32_t warnings, double now) const;
  [[nodiscard]] Lateness lateness(const Submission& submission, double now) const;
  [[nodiscard]] Lateness lateness_of_word(double now) const;
  [[nodiscard]] std::uint32_t warnings_of(std::uint32_t id) const;
  [[nodiscard]] std::vector<std::uint64_t> all_but_late(std::span<Submission* const> of_id, Lateness wanted,
                                                        double now) const;
  [[nodiscard]] std::vector<std::uint32_t> ids_of(const Late& late, std::size_t names) const;
  [[nodiscard]] std::vector<std::byte> what_it_has(std::span<const std::uint32_t> ids,
                                                   std::span<Submission* const> of_id) const;
  void report_missing(std::span<std::byte> who_has, std::span<Submission* const> of_id, const Late& late);
  void report_words(Lateness word);
  [[nodiscard]] std::string text_of_word(double seconds) const;
  void tell(std::uint32_t id, Submission* submission, const RankSet& have, const RankSet& missing, bool give_up);
  void abandon(std::uint32_t id, Submission* submission, const std::string& why);

  Options options_;
  CoordinatorLink& link_;
  NameTable& table_;
  InFlight& in_flight_;
  std::function<void(const std::string&)> warn_;
  std::optional<std::string> end_;
  double looked_ = 0;                ///< when overdue last looked
  double word_since_ = 0;            ///< when this rank said its word, or anything was reduced after that
  std::uint32_t word_warnings_ = 0;  ///< since any rank said that, or anything was reduced: the same on all ranks
  std::map<std::uint32_t, GivenUp> given_up_;  ///< by id
  /// How often all ranks have been warned of what is in flight, by id: the same on all of them.
  std::map<std::uint32_t, std::uint32_t> warnings_;
};

}  // namespace ronda
