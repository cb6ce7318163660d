#include <ronda/coordinator/detail/missing.hpp>
#include <ronda/coordinator/detail/name_bits.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>

#include <cmath>
#include <cstring>
#include <utility>

namespace ronda {
namespace {

constexpr double between_looks_for_overdue = 0.05;

}  // namespace

MissingRanks::MissingRanks(const Options& options, CoordinatorLink& link, NameTable& table, InFlight& in_flight,
                           std::function<void(const std::string&)> warn)
    : options_(options), link_(link), table_(table), in_flight_(in_flight), warn_(std::move(warn)) {}

void MissingRanks::something_was_reduced(double now) {
  word_since_ = now;
  word_warnings_ = 0;
}

void MissingRanks::forget(std::uint32_t id) {
  if (!warnings_.empty()) warnings_.erase(id);
}

void MissingRanks::own_word_was_heard(Announcement::What what, double now) {
  word_since_ = now;
  if (what == Announcement::What::joined) given_up_.clear();  // who joins is behind in nothing
}

// ---- on this rank ---------------------------------------------------------------------------------------------------

/// Seconds after which there is one more: each comes after twice as long as the one before.
double MissingRanks::waiting_for_warning(std::uint32_t warnings) const {
  return std::ldexp(options_.warning, static_cast<int>(warnings));
}

MissingRanks::Lateness MissingRanks::lateness(double since, std::uint32_t warnings, double now) const {
  const auto over = [&](double limit) { return limit > 0 && now - since > limit; };
  if (over(options_.limit)) return Lateness::over_the_limit;
  return over(waiting_for_warning(warnings)) ? Lateness::worth_a_warning : Lateness::in_time;
}

std::uint32_t MissingRanks::warnings_of(std::uint32_t id) const {
  const auto found = warnings_.find(id);
  return found == warnings_.end() ? 0 : found->second;
}

MissingRanks::Lateness MissingRanks::lateness(const Submission& submission, double now) const {
  return lateness(submission.since, submission.id ? warnings_of(*submission.id) : 0, now);
}

/// Of this rank's word that it joins or closes, for which it waits for the others'.
MissingRanks::Lateness MissingRanks::lateness_of_word(double now) const {
  const bool waits = table_.has_joined(link_.rank()) || table_.has_closed(link_.rank());
  return waits ? lateness(word_since_, word_warnings_, now) : Lateness::in_time;
}

bool MissingRanks::overdue(double now) {
  if (now - looked_ < between_looks_for_overdue) return false;
  looked_ = now;
  return lateness_of_word(now) != Lateness::in_time || in_flight_.any_of([&](const Submission& submission) {
    return lateness(submission, now) != Lateness::in_time;
  });
}

bool MissingRanks::fail_given_up(Submission& submission) {
  const auto found = submission.id ? given_up_.find(*submission.id) : given_up_.end();
  if (found == given_up_.end()) return false;
  submission.fail(communication_error("the other ranks gave it up before this one submitted it: " + found->second.why));
  if (--found->second.times == 0) given_up_.erase(found);
  return true;
}

// ---- on all ranks together ------------------------------------------------------------------------------------------

/// A bit for the word, then one for each name: all that are not so late. What all ranks have of these is late on none.
std::vector<std::uint64_t> MissingRanks::all_but_late(std::span<Submission* const> of_id, Lateness wanted,
                                                      double now) const {
  std::vector<std::uint64_t> bits(1 + words_for(of_id.size()));
  bits[0] = lateness_of_word(now) == wanted ? 1 : 0;
  for (std::uint32_t id = 0; id < of_id.size(); ++id)
    if (of_id[id] != nullptr && lateness(*of_id[id], now) == wanted) bits[1 + id / bits_a_word] |= bit_of(id);
  for (std::uint64_t& word : bits) word = ~word;
  return bits;
}

MissingRanks::Late MissingRanks::Late::of(std::vector<std::uint64_t> not_warned,
                                          std::vector<std::uint64_t> not_given_up) {
  Late late{std::move(not_warned), std::move(not_given_up)};
  for (auto* bits : {&late.warn, &late.give_up})
    for (std::uint64_t& word : *bits) word = ~word;
  if (late.warn[0] != 0) late.word = Lateness::worth_a_warning;
  if (late.give_up[0] != 0) late.word = Lateness::over_the_limit;
  late.warn.erase(late.warn.begin());
  late.give_up.erase(late.give_up.begin());
  return late;
}

/// At most as many as fit a block with any ranks; the others come next time.
std::vector<std::uint32_t> MissingRanks::ids_of(const Late& late, std::size_t names) const {
  std::vector<std::uint32_t> ids;
  const std::size_t most = link_.large_block() / (64 + 4 * static_cast<std::size_t>(link_.size()));
  for (std::uint32_t id = 0; id < names && ids.size() < most; ++id)
    if (has_bit(late.warn, id) || has_bit(late.give_up, id)) ids.push_back(id);
  return ids;
}

/// A block of announcements.
std::vector<std::byte> MissingRanks::what_it_has(std::span<const std::uint32_t> ids,
                                                 std::span<Submission* const> of_id) const {
  std::vector<std::byte> bytes(link_.large_block());
  AnnouncementBlock block(bytes);
  for (const std::uint32_t id : ids)
    if (of_id[id] != nullptr)
      block.add({Announcement::What::has, {reinterpret_cast<const char*>(&id), sizeof id}, {}, RankSet(link_.rank())});
  return bytes;
}

Task MissingRanks::report(double now) {
  end_.reset();
  const std::vector<Submission*> of_id = in_flight_.by_id();
  std::vector<std::uint64_t> not_warned = all_but_late(of_id, Lateness::worth_a_warning, now);
  LinkOperation& first = link_.intersect(not_warned, true);
  co_await first;
  std::vector<std::uint64_t> not_given_up = all_but_late(of_id, Lateness::over_the_limit, now);
  LinkOperation& second = link_.intersect(not_given_up, true);
  co_await second;
  const Late late = Late::of(std::move(not_warned), std::move(not_given_up));
  const std::vector<std::uint32_t> ids = ids_of(late, of_id.size());
  if (!ids.empty()) {
    std::vector<std::byte> who_has = what_it_has(ids, of_id);
    LinkOperation& merging = link_.merge(who_has);
    co_await merging;
    report_missing(who_has, of_id, late);
  }
  report_words(late.word);
}

/// The same on all ranks.
void MissingRanks::report_missing(std::span<std::byte> who_has, std::span<Submission* const> of_id, const Late& late) {
  std::map<std::uint32_t, RankSet> ranks_of;
  for (const Announcement& announcement : Announcements::read(who_has).all) {
    std::uint32_t id = 0;
    std::memcpy(&id, announcement.name.data(), sizeof id);
    ranks_of[id] = announcement.ranks;
  }
  for (const auto& [id, have] : ranks_of) {
    RankSet not_missing = have;
    not_missing.add(table_.joined());
    const RankSet missing = not_missing.complement(link_.size());
    if (!missing.empty()) tell(id, of_id[id], have, missing, has_bit(late.give_up, id));
  }
}

void MissingRanks::report_words(Lateness word) {
  if (word == Lateness::over_the_limit) end_ = text_of_word(options_.limit);
  if (word != Lateness::worth_a_warning) return;
  const std::string text = text_of_word(waiting_for_warning(word_warnings_));
  ++word_warnings_;
  warn_(text);
}

/// Ranks that have joined or closed wait for others.
std::string MissingRanks::text_of_word(double seconds) const {
  const bool closes = !table_.closed().empty();
  const RankSet& said = closes ? table_.closed() : table_.joined();
  TextWriter text;
  text << table_.text_of(said) << (closes ? " closed the coordinator" : " joined") << ", and for " << seconds
       << " s not " << table_.text_of(said.complement(link_.size())) << ", and nothing was reduced";
  return text.str();
}

/// Warns that some ranks miss what others have submitted, or gives it up.
/// @param submission  this rank's; null where it is one of those who miss it
void MissingRanks::tell(std::uint32_t id, Submission* submission, const RankSet& have, const RankSet& missing,
                        bool give_up) {
  TextWriter text;
  text << "'" << table_[id].text << "' (" << table_[id].descriptor.text() << ") was submitted by "
       << table_.text_of(have) << ", and for " << (give_up ? options_.limit : waiting_for_warning(warnings_of(id)))
       << " s not by " << table_.text_of(missing);
  if (give_up) return abandon(id, submission, text.str());
  ++warnings_[id];
  warn_(text.str());
}

/// The n-th use of a name on one rank belongs to the n-th on all others: where a rank has none to fail now, its next
/// one does, so that nothing of this use is ever reduced with anything of the next.
void MissingRanks::abandon(std::uint32_t id, Submission* submission, const std::string& why) {
  table_.forget_contest(id);
  warnings_.erase(id);
  if (submission != nullptr) return in_flight_.fail(*submission, communication_error(why));
  if (table_.has_joined(link_.rank())) return;
  GivenUp& given_up = given_up_[id];
  ++given_up.times;
  given_up.why = why;
}

}  // namespace ronda
