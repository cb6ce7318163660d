#include <ronda/collectives/watch/diagnosis.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <sstream>

namespace ronda {
namespace {

using Answer = RankReport::Answer;

constexpr std::size_t most_named = 4;

bool waits(const RankReport& report) {
  return report.answer == Answer::yes && report.state && report.state->status.waits() && report.state->pending();
}

std::string rank_text(const RankReport& report) {
  return "rank " + std::to_string(report.rank) + (report.host.empty() ? "" : " on " + report.host);
}

/// Its latest collective, in words.
std::string last_of(const RankReport& report) {
  if (!report.state || report.state->trail.empty()) return {};
  const Record* record = report.state->pending();
  if (record == nullptr) record = &report.state->trail.back();
  const char* where = record->outcome() != Outcome::started ? "after " : waits(report) ? "in " : "with ";
  return where + text_of(*record) + (*where == 'w' ? " under way" : "");
}

std::string what_it_does(const RankReport& report) {
  const std::string last = last_of(report), seen = last.empty() ? "" : ", last seen " + last;
  switch (report.answer) {
    case Answer::stopped: return "its process is stopped" + seen;
    case Answer::dead: return "its process is dead" + seen;
    case Answer::none: return "nothing is heard from it (dead, stopped, or cut off from the network)" + seen;
    case Answer::yes: break;
  }
  if (waits(report)) return "it is " + last;
  const RankStatus& status = report.state->status;
  std::ostringstream text;
  if (status.activity == Activity::running)
    text << "it is at its own work" << (last.empty() ? "" : ", " + last);
  else
    text << "it has been " << name_of(status.activity) << " for " << static_cast<int>(status.activity_seconds) << " s";
  return text.str();
}

bool waits_in(const RankReport& report, std::uint64_t group) {
  return waits(report) && report.state->pending()->group == group;
}

/// Whom the ranks that wait in `group` wait for, where that is known: also by way of others that wait.
std::set<int> wanted_in(std::uint64_t group, std::span<const RankReport> ranks) {
  std::set<int> wanted;
  std::size_t before = 0;
  do {
    before = wanted.size();
    for (const RankReport& report : ranks) {
      if (!waits_in(report, group) && !(waits(report) && wanted.contains(report.rank))) continue;
      const auto& status = report.state->status;
      wanted.insert(status.missing.begin(), status.missing.begin() + status.missing_count);
    }
  } while (wanted.size() != before);
  return wanted;
}

/// Where it has been silent all the time, it may be one.
bool may_be_of(std::uint64_t group, const RankReport& report) {
  return group == 0 || !report.state ||
         std::ranges::any_of(report.state->trail, [&](const Record& record) { return record.group == group; });
}

/// Those that are not there: silent, or at something else than waiting. Of these the ones that somebody in `group`
/// waits for, where that is known; or its ranks, as far as they are.
std::vector<const RankReport*> absent(std::uint64_t group, std::span<const RankReport> ranks) {
  const std::set<int> wanted = wanted_in(group, ranks);
  std::vector<const RankReport*> all, members, asked_for;
  for (const RankReport& report : ranks) {
    if (waits(report)) continue;
    all.push_back(&report);
    if (may_be_of(group, report)) members.push_back(&report);
    if (wanted.contains(report.rank)) asked_for.push_back(&report);
  }
  return !asked_for.empty() ? asked_for : !members.empty() ? members : all;
}

bool excused(const RankReport& report) {
  if (report.answer != Answer::yes) return false;
  const RankStatus& status = report.state->status;
  return status.activity != Activity::running && status.activity_seconds < status.activity_limit;
}

/// Ranks that wait in an earlier collective of the group than `pending` and have not come to that.
std::vector<const RankReport*> behind(std::span<const RankReport> ranks, const Record& pending) {
  std::vector<const RankReport*> found;
  for (const RankReport& report : ranks) {
    if (!report.state) continue;
    std::uint64_t last = 0;
    for (const Record& record : report.state->trail)
      if (record.group == pending.group) last = std::max(last, record.number);
    if (last > 0 && last < pending.number) found.push_back(&report);
  }
  return found;
}

std::string name_late(std::span<const RankReport* const> late) {
  std::string text = "waiting for ";
  for (std::size_t i = 0; i < std::min(late.size(), most_named); ++i)
    text += (i == 0 ? "" : "; for ") + rank_text(*late[i]) + ": " + what_it_does(*late[i]);
  if (late.size() > most_named) text += "; and for " + std::to_string(late.size() - most_named) + " more";
  return text;
}

std::string_view question_for(Kind kind) {
  switch (kind) {
    case Kind::replay: return "no device moves on: has a GPU stopped, or is the network between them cut?";
    case Kind::send: return "nobody takes the message: does the other rank receive it, or do both send first?";
    case Kind::receive: return "no message arrives: does the other rank send it, or do both receive first?";
    default: return "no message arrives: is the network between their hosts cut?";
  }
}

/// All wait in the same collective, and nothing comes.
std::string tell_network(std::span<const RankReport> ranks, const Record& pending) {
  std::string text = "all ranks wait in it and ";
  text += question_for(pending.kind());
  std::size_t named = 0;
  for (const RankReport& report : ranks) {
    if (!waits_in(report, pending.group) || report.state->status.missing_count == 0) continue;
    if (named++ == most_named) break;
    const auto& status = report.state->status;
    const std::vector<int> missing(status.missing.begin(), status.missing.begin() + status.missing_count);
    text += (named == 1 ? " " : ", ") + rank_text(report) + " waits for " + ranks_text(missing);
  }
  return text;
}

}  // namespace

std::string ranks_text(std::span<const int> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  const std::size_t named = ranks.size() <= most_named + 1 ? ranks.size() : most_named;
  for (std::size_t i = 0; i < named; ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  if (named < ranks.size()) text += " and " + std::to_string(ranks.size() - named) + " more";
  return text;
}

std::string text_of(const Record& record) {
  std::string text(record.label.view());
  if (!record.algorithm.view().empty()) text.append(" by ").append(record.algorithm.view());
  if (record.step > 0) text += " of step " + std::to_string(record.step);
  return text;
}

std::string contents_of(const Record& record) {
  if (record.kind() == Kind::mpi) return "in MPI";
  if (record.kind() == Kind::replay) return "a replay of what was recorded";
  std::string text = std::string(name_of(record.kind())) + " of " + std::to_string(record.count) + " " +
                     std::string(name_of(record.dtype()));
  const bool reduces =
      record.kind() == Kind::allreduce || record.kind() == Kind::reduce || record.kind() == Kind::reduce_scatter;
  if (reduces) text += ", " + std::string(name_of(record.op()));
  return text;
}

std::optional<Divergence> first_divergence(std::span<const RankReport> ranks) {
  struct Group {
    std::uint64_t from = 0, to = std::numeric_limits<std::uint64_t>::max();  ///< what all its ranks have
    std::map<std::uint64_t, std::vector<std::pair<int, Record>>> records;    ///< by number
  };
  std::map<std::uint64_t, Group> groups;
  for (const RankReport& report : ranks) {
    if (!report.state) continue;
    std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> spans;  // by group: first and last number
    for (const Record& record : report.state->trail) {
      if (record.number == 0) continue;
      groups[record.group].records[record.number].emplace_back(report.rank, record);
      auto& [first, last] = spans.try_emplace(record.group, record.number, record.number).first->second;
      first = std::min(first, record.number);
      last = std::max(last, record.number);
    }
    for (const auto& [group, span] : spans) {
      groups[group].from = std::max(groups[group].from, span.first);
      groups[group].to = std::min(groups[group].to, span.second);
    }
  }
  for (const auto& [id, group] : groups)
    for (auto at = group.records.lower_bound(group.from); at != group.records.end() && at->first <= group.to; ++at) {
      const auto& records = at->second;
      const auto alike = [&](const Record& one) {
        return std::count_if(records.begin(), records.end(),
                             [&](const auto& other) { return one.same_as(other.second); });
      };
      const auto usual = std::max_element(records.begin(), records.end(), [&](const auto& a, const auto& b) {
        return alike(a.second) < alike(b.second);
      });
      Divergence divergence{id, at->first, records, {}};
      for (const auto& [rank, record] : records)
        if (!record.same_as(usual->second)) divergence.odd.push_back(rank);
      if (!divergence.odd.empty()) return divergence;
    }
  return {};
}

std::string text_of(const Divergence& divergence, std::span<const RankReport> ranks) {
  std::vector<int> most;
  const Record* usual = &divergence.records.begin()->second;
  for (const auto& [rank, record] : divergence.records) {
    if (std::find(divergence.odd.begin(), divergence.odd.end(), rank) != divergence.odd.end()) continue;
    most.push_back(rank);
    usual = &record;
  }
  const auto say = [](const Record& record) { return text_of(record) + " (" + contents_of(record) + ")"; };
  std::string text = "the ranks have gone different ways: collective " + std::to_string(divergence.number) + " is " +
                     say(*usual) + " on " + ranks_text(most);
  std::size_t named = 0;
  for (const auto& [rank, record] : divergence.records) {
    if (std::find(divergence.odd.begin(), divergence.odd.end(), rank) == divergence.odd.end()) continue;
    if (named++ == most_named) break;
    const auto report = std::find_if(ranks.begin(), ranks.end(), [odd = rank](const auto& r) { return r.rank == odd; });
    text += ", and " + say(record) + " on " + rank_text(*report);
  }
  return text;
}

Diagnosis diagnose(std::span<const RankReport> ranks) {
  Diagnosis diagnosis;
  // In other groups ranks may wait as well, though not for long.
  auto first = std::ranges::find_if(ranks, [](const auto& r) { return waits(r) && r.state->status.alarmed; });
  if (first == ranks.end()) first = std::ranges::find_if(ranks, waits);
  if (first == ranks.end()) return diagnosis;
  const Record& pending = *first->state->pending();
  diagnosis.collective = text_of(pending);

  if (const auto divergence = first_divergence(ranks)) {
    diagnosis.late = divergence->odd;
    diagnosis.text = text_of(*divergence, ranks);
    return diagnosis;
  }
  std::vector<const RankReport*> late = absent(pending.group, ranks);
  if (late.empty()) late = behind(ranks, pending);
  for (const RankReport* report : late) diagnosis.late.push_back(report->rank);
  diagnosis.excused = !late.empty() && std::all_of(late.begin(), late.end(), [](auto* r) { return excused(*r); });
  diagnosis.text = late.empty() ? tell_network(ranks, pending) : name_late(late);
  return diagnosis;
}

}  // namespace ronda
