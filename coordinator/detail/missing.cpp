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

MissingRanks::Late MissingRanks::agree_on_late(std::span<Submission* const> of_id, double now) {
  const Lateness word = lateness_of_word(now);
  const auto agree = [&](Lateness wanted) {  // a bit for the word, then one for each name
    std::vector<std::uint64_t> bits(1 + words_for(of_id.size()));
    bits[0] = word == wanted ? 1 : 0;
    for (std::uint32_t id = 0; id < of_id.size(); ++id)
      if (of_id[id] != nullptr && lateness(*of_id[id], now) == wanted) bits[1 + id / bits_a_word] |= bit_of(id);
    for (std::uint64_t& word_of_bits : bits) word_of_bits = ~word_of_bits;  // what any rank has, not what all have
    link_.intersect(bits, true);
    for (std::uint64_t& word_of_bits : bits) word_of_bits = ~word_of_bits;
    return bits;
  };
  Late late{agree(Lateness::worth_a_warning), agree(Lateness::over_the_limit)};
  if (late.warn[0] != 0) late.word = Lateness::worth_a_warning;
  if (late.give_up[0] != 0) late.word = Lateness::over_the_limit;
  late.warn.erase(late.warn.begin());
  late.give_up.erase(late.give_up.begin());
  return late;
}

/// The same on all ranks.
std::map<std::uint32_t, RankSet> MissingRanks::find_who_has(std::span<const std::uint32_t> ids,
                                                            std::span<Submission* const> of_id) {
  std::vector<std::byte> bytes(link_.large_block());
  AnnouncementBlock block(bytes);
  for (const std::uint32_t id : ids)
    if (of_id[id] != nullptr)
      block.add({Announcement::What::has, {reinterpret_cast<const char*>(&id), sizeof id}, {}, RankSet(link_.rank())});
  link_.merge(bytes);
  std::map<std::uint32_t, RankSet> who_has;
  for (const Announcement& announcement : Announcements::read(bytes).all) {
    std::uint32_t id = 0;
    std::memcpy(&id, announcement.name.data(), sizeof id);
    who_has[id] = announcement.ranks;
  }
  return who_has;
}

std::optional<std::string> MissingRanks::report(double now) {
  const std::vector<Submission*> of_id = in_flight_.by_id();
  const Late late = agree_on_late(of_id, now);
  std::vector<std::uint32_t> ids;  // at most as many as fit a block with any ranks; the others come next time
  const std::size_t most = link_.large_block() / (64 + 4 * static_cast<std::size_t>(link_.size()));
  for (std::uint32_t id = 0; id < of_id.size() && ids.size() < most; ++id)
    if (has_bit(late.warn, id) || has_bit(late.give_up, id)) ids.push_back(id);
  if (!ids.empty()) {
    for (const auto& [id, have] : find_who_has(ids, of_id)) {
      RankSet not_missing = have;
      not_missing.add(table_.joined());
      const RankSet missing = not_missing.complement(link_.size());
      if (!missing.empty()) tell(id, of_id[id], have, missing, has_bit(late.give_up, id));
    }
  }
  if (late.word == Lateness::over_the_limit) return text_of_word(options_.limit);
  if (late.word == Lateness::worth_a_warning) {
    const std::string text = text_of_word(waiting_for_warning(word_warnings_));
    ++word_warnings_;
    warn_(text);
  }
  return std::nullopt;
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
