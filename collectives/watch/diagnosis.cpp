#include <ronda/collectives/watch/diagnosis.hpp>
#include <ronda/core/text.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

namespace ronda {
namespace {

using Answer = RankReport::Answer;

constexpr std::size_t most_named = 4;

bool waits(const RankReport& report) {
  return report.answer == Answer::yes && report.state && report.state->status.waits() && report.state->pending();
}

/// It waits for what it began so long ago that the record is gone: a message among many others.
bool waits_since_long(const RankReport& report) {
  return report.answer == Answer::yes && report.state && report.state->status.waits() &&
         report.state->status.missing_count > 0 && !report.state->trail.empty() && report.state->pending() == nullptr;
}

/// It waits, but what it did last has not arrived: it may be in the collective that stands still.
bool waits_somewhere(const RankReport& report) {
  return report.answer == Answer::yes && report.state && report.state->status.waits() && report.state->trail.empty();
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
  TextWriter text;
  if (status.activity == Activity::running)
    text << "it is at its own work" << (last.empty() ? "" : ", " + last);
  else
    text << "it has been " << name_of(status.activity) << " for "
         << static_cast<int>(plausible_seconds(status.activity_seconds)) << " s";
  return text.str();
}

bool waits_in(const RankReport& report, std::uint64_t group) {
  return waits(report) && report.state->pending()->group == group;
}

/// Whom the ranks that wait in `group` wait for, where that is known: also by way of others that wait.
std::set<int> wanted_in(std::uint64_t group, std::span<const RankReport> ranks) {
  std::unordered_map<int, const RankReport*> waiting;
  for (const RankReport& report : ranks)
    if (waits(report) || waits_since_long(report)) waiting.emplace(report.rank, &report);
  std::set<int> wanted;
  std::vector<const RankReport*> to_ask;
  for (const auto& [rank, report] : waiting)
    if (waits_in(*report, group)) to_ask.push_back(report);
  while (!to_ask.empty()) {
    const RankStatus& status = to_ask.back()->state->status;
    to_ask.pop_back();
    for (std::size_t i = 0; i < status.missing_count; ++i) {
      const auto found = waiting.find(status.missing[i]);
      if (wanted.insert(status.missing[i]).second && found != waiting.end() && !waits_in(*found->second, group))
        to_ask.push_back(found->second);
    }
  }
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
    if (waits(report) || waits_somewhere(report) || waits_since_long(report)) continue;
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
  std::string text = printable(record.label.view());
  if (!record.algorithm.view().empty()) text += " by " + printable(record.algorithm.view());
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

namespace {

/// A record of a rank, in the place of its group's order that `group` and `number` say.
struct PlacedRecord {
  std::uint64_t group, number;
  int rank;
  const Record* record;
  [[nodiscard]] auto place() const noexcept { return std::tie(group, number); }
};

/// The records of all ranks, by place, then by rank: of those places that all ranks of the group still have.
std::vector<PlacedRecord> entries_of(std::span<const RankReport> ranks) {
  struct Window {
    std::uint64_t from = 0, to = std::numeric_limits<std::uint64_t>::max();
  };
  std::unordered_map<std::uint64_t, Window> windows;  // by group
  std::vector<PlacedRecord> entries;
  for (const RankReport& report : ranks) {
    if (!report.state) continue;
    std::map<std::uint64_t, Window> own;
    for (const Record& record : report.state->trail) {
      if (record.number == 0) continue;
      entries.push_back({record.group, record.number, report.rank, &record});
      Window& window = own.try_emplace(record.group, Window{record.number, record.number}).first->second;
      window = {std::min(window.from, record.number), std::max(window.to, record.number)};
    }
    for (const auto& [group, window] : own) {
      Window& all = windows[group];
      all = {std::max(all.from, window.from), std::min(all.to, window.to)};
    }
  }
  std::erase_if(entries, [&](const PlacedRecord& entry) {
    const Window& window = windows.at(entry.group);
    return entry.number < window.from || entry.number > window.to;
  });
  std::ranges::stable_sort(entries, {}, &PlacedRecord::place);  // they came by rank
  return entries;
}

/// What most ranks do; of several such the one of the lowest rank. Equal records are sorted next to each other.
const Record& usual_of(std::span<const PlacedRecord> entries, const auto& less) {
  std::vector<const PlacedRecord*> sorted;
  for (const PlacedRecord& entry : entries) sorted.push_back(&entry);
  std::ranges::stable_sort(sorted,
                           [&](const PlacedRecord* a, const PlacedRecord* b) { return less(*a->record, *b->record); });
  const PlacedRecord* usual = nullptr;
  std::size_t most = 0;
  for (std::size_t first = 0, next = 0; first < sorted.size(); first = next) {
    while (next < sorted.size() && !less(*sorted[first]->record, *sorted[next]->record)) ++next;
    const bool more = next - first > most || (next - first == most && sorted[first]->rank < usual->rank);
    if (more) most = next - first, usual = sorted[first];
  }
  return *usual->record;
}

}  // namespace

std::optional<Divergence> first_divergence(std::span<const RankReport> ranks, std::size_t* compared) {
  const auto count = [&] {
    if (compared != nullptr) ++*compared;
  };
  const std::vector<PlacedRecord> entries = entries_of(ranks);
  for (std::size_t first = 0, next = 0; first < entries.size(); first = next) {
    bool alike = true;
    for (; next < entries.size() && entries[next].place() == entries[first].place(); ++next) {
      count();
      alike = alike && entries[next].record->same_as(*entries[first].record);
    }
    if (alike) continue;
    const auto place = std::span(entries).subspan(first, next - first);
    const Record usual = usual_of(place, [&](const Record& a, const Record& b) {
      count();
      return a.identity() < b.identity();
    });
    Divergence divergence{place[0].group, place[0].number, {}, {}};
    for (const PlacedRecord& entry : place) {
      divergence.records.emplace_back(entry.rank, *entry.record);
      if (!entry.record->same_as(usual)) divergence.odd.push_back(entry.rank);
    }
    return divergence;
  }
  return {};
}

std::string text_of(const Divergence& divergence, std::span<const RankReport> ranks) {
  const auto is_odd = [odd = std::set(divergence.odd.begin(), divergence.odd.end())](int rank) {
    return odd.contains(rank);
  };
  std::vector<int> most;
  const Record* usual = &divergence.records.begin()->second;
  for (const auto& [rank, record] : divergence.records) {
    if (is_odd(rank)) continue;
    most.push_back(rank);
    usual = &record;
  }
  const auto say = [](const Record& record) { return text_of(record) + " (" + contents_of(record) + ")"; };
  std::string text = "the ranks have gone different ways: collective " + std::to_string(divergence.number) + " is " +
                     say(*usual) + " on " + ranks_text(most);
  std::size_t named = 0;
  for (const auto& [rank, record] : divergence.records) {
    if (!is_odd(rank)) continue;
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
