#include <ronda/collectives/watch/recorder.hpp>
#include <ronda/collectives/watch/trace.hpp>
#include <ronda/core/data_files.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <set>

namespace ronda {
namespace {

namespace fs = std::filesystem;

/// Of two ranks that wait in the same collective, the one whose signs of life end this much earlier was the first to
/// die. Seconds.
constexpr double died_before = 0.02;

/// More than any machine has; each that has left no record is counted and named.
constexpr int most_ranks = 1 << 20;

std::string shown(const fs::path& path) { return printable(path.string()); }

[[noreturn]] void refuse(const fs::path& path, const std::string& why) {
  throw InputError(shown(path) + ": " + why + "; expected a record that a rank of Ronda has left");
}

/// An open file.
class OpenFile {
 public:
  explicit OpenFile(const fs::path& path) : descriptor_(open_plain(path)) {}
  OpenFile(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

std::unique_ptr<RecordFile> read_file(const fs::path& path) {
  auto file = std::make_unique<RecordFile>();
  const OpenFile opened(path);
  if (opened.descriptor() < 0)
    throw InputError("cannot open " + shown(path) + ": " + (errno == EINVAL ? "it is no file" : std::strerror(errno)));
  const bool whole = read_whole(opened.descriptor(), *file);
  struct stat status {};
  const auto length = ::fstat(opened.descriptor(), &status) == 0 ? static_cast<std::size_t>(status.st_size) : 0;
  const RecordHead& head = file->head;
  if (length < sizeof(RecordHead) || head.magic != record_magic) refuse(path, "this is something else");
  if (head.version != record_version)
    refuse(path,
           "it has version " + std::to_string(head.version) + ", this program reads " + std::to_string(record_version));
  if (!whole || length != sizeof(RecordFile) || head.records != record_ring)
    refuse(path, "it has " + std::to_string(length) + " bytes of " + std::to_string(sizeof(RecordFile)));
  if (head.size < 1 || head.size > most_ranks || head.rank < 0 || head.rank >= head.size)
    refuse(path, "it is damaged: rank " + std::to_string(head.rank) + " of " + std::to_string(head.size));
  return file;
}

void require_whole(const fs::path& path, const Record& record) {
  if (!record.has_meaning()) refuse(path, "it is damaged: record " + std::to_string(record.index) + " has no meaning");
}

std::vector<fs::path> files_of(std::span<const fs::path> places) {
  std::vector<fs::path> files;
  for (const fs::path& place : places) {
    std::error_code error;
    if (!fs::is_directory(place, error)) {
      files.push_back(place);
      continue;
    }
    const std::size_t found = files.size();
    for (const auto& entry : fs::directory_iterator(place, error))
      if (entry.path().extension() == ".ronda") files.push_back(entry.path());
    if (files.size() == found) throw InputError("there are no records (rank-*.ronda) in " + shown(place));
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  for (const fs::path& file : files) note_data_file(file);
  return files;
}

/// Seconds since the ranks met; for one that never came so far, since it began.
class Times {
 public:
  explicit Times(const RecordHead& head)
      : head_(head), origin_(head.met_ticks != 0 ? nanoseconds_of(head.met_ticks, head) : head.first.nanoseconds) {}
  [[nodiscard]] double of_nanoseconds(std::uint64_t time) const {
    return 1e-9 * static_cast<double>(static_cast<std::int64_t>(time - origin_));
  }
  [[nodiscard]] double of_ticks(std::uint64_t ticks) const { return of_nanoseconds(nanoseconds_of(ticks, head_)); }

 private:
  const RecordHead& head_;
  std::uint64_t origin_;
};

/// Brief collectives look at the clock now and then; the others are put between, one after the other.
void fill_in(std::vector<Span>& spans, double last_life) {
  for (std::size_t at = 0; at < spans.size(); ++at) {
    if (spans[at].exact) continue;
    std::size_t next = at;
    while (next < spans.size() && !spans[next].exact) ++next;
    const double to = next < spans.size() ? spans[next].begin : last_life;
    const double from = at > 0 ? std::min(spans[at - 1].end, to) : to;
    const double each = (to - from) / static_cast<double>(next - at);
    for (std::size_t i = at; i < next; ++i) {
      spans[i].begin = from + each * static_cast<double>(i - at);
      spans[i].end = spans[i].begin + each;
    }
    at = next;
  }
}

RankTrace trace_of(const fs::path& path, const RecordFile& file) {
  RankTrace trace;
  trace.path = path;
  trace.rank = file.head.rank;
  trace.host = printable(file.head.host.view());
  trace.process = file.head.process;
  trace.program = file.head.program.view();
  trace.began = 1e-9 * static_cast<double>(file.head.wall_nanoseconds);
  trace.state = state_of(file, record_ring);
  const Times times(file.head);
  trace.last_life = times.of_nanoseconds(file.head.last.nanoseconds);
  if (file.head.alive != 0) trace.last_life = std::max(trace.last_life, times.of_ticks(file.head.alive));
  for (const Record& record : trace.state.trail) {
    require_whole(path, record);
    for (const std::uint64_t ticks : {record.started, record.ended})
      if (ticks != 0) trace.last_life = std::max(trace.last_life, times.of_ticks(ticks));
  }
  for (const Record& record : trace.state.trail) {
    Span span{record, 0, trace.last_life, record.started != 0};
    if (record.started != 0) span.begin = times.of_ticks(record.started);
    if (record.ended != 0) span.end = times.of_ticks(record.ended);
    trace.spans.push_back(span);
  }
  fill_in(trace.spans, trace.last_life);
  const Record* last = trace.last();
  trace.ended = last != nullptr && last->outcome() == Outcome::done && last->label.view() == "MPI_Finalize";
  return trace;
}

/// The ranks that wait, and those that had begun the same collective as one that does when they were ended.
std::vector<bool> waiting_ranks(const Trace& trace) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> places;  // by group and number
  for (const RankTrace& rank : trace.ranks)
    if (const Record* pending = rank.state.pending(); pending != nullptr && rank.state.status.waits())
      places.emplace(pending->group, pending->number);
  if (places.empty())  // all were ended before one could be seen to wait
    for (const RankTrace& rank : trace.ranks)
      if (const Record* pending = rank.state.pending()) places.emplace(pending->group, pending->number);
  std::vector<bool> waiting;
  for (const RankTrace& rank : trace.ranks) {
    const Record* pending = rank.state.pending();
    // One that was ended between a collective's end and the end of its wait has nothing to wait for.
    waiting.push_back(pending != nullptr &&
                      (rank.state.status.waits() || places.contains({pending->group, pending->number})));
  }
  return waiting;
}

/// The ranks as a watchdog would have seen them. Who waits was alive; who does not, while others wait, was not.
std::vector<RankReport> reports_of(const Trace& trace) {
  double first = 0, second = 0;  // the earliest ends of life
  int earliest = -1;
  for (const RankTrace& rank : trace.ranks) {
    if (earliest < 0 || rank.last_life < first) {
      second = earliest < 0 ? rank.last_life : first;
      first = rank.last_life;
      earliest = rank.rank;
    } else if (rank.last_life < second || second == first) {
      second = rank.last_life;
    }
  }
  const std::vector<bool> waiting = waiting_ranks(trace);
  const bool all_wait = std::all_of(waiting.begin(), waiting.end(), [](bool waits) { return waits; });
  std::vector<RankReport> reports;
  for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
    const RankTrace& rank = trace.ranks[i];
    const bool died_first = all_wait && rank.rank == earliest && second - first > died_before;
    const bool lives = waiting[i] && !died_first;
    reports.push_back({rank.rank, rank.host, lives ? RankReport::Answer::yes : RankReport::Answer::dead, rank.state});
    if (lives) reports.back().state->status.still = true;
  }
  return reports;
}

std::vector<Lateness> last_to_come(const Trace& trace) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::pair<double, int>>> starts;  // by group and number
  for (const RankTrace& rank : trace.ranks)
    for (const Span& span : rank.spans)
      if (span.exact && span.record.number > 0)
        starts[{span.record.group, span.record.number}].emplace_back(span.begin, rank.rank);
  std::map<int, Lateness> by_rank;
  std::size_t of = 0;
  for (auto& [place, times] : starts) {
    if (times.size() != trace.ranks.size() || times.size() < 2) continue;
    ++of;
    const auto [earliest, latest] = std::minmax_element(times.begin(), times.end());
    Lateness& lateness = by_rank[latest->second];
    lateness.rank = latest->second;
    ++lateness.times;
    lateness.seconds += latest->first - earliest->first;
  }
  std::vector<Lateness> all;
  for (auto& [rank, lateness] : by_rank) {
    lateness.of = of;
    lateness.seconds /= static_cast<double>(lateness.times);
    all.push_back(lateness);
  }
  std::sort(all.begin(), all.end(), [](const Lateness& a, const Lateness& b) {
    return static_cast<double>(a.times) * a.seconds > static_cast<double>(b.times) * b.seconds;
  });
  return all;
}

std::string table(const Trace& trace) {
  double latest = 0;
  for (const RankTrace& rank : trace.ranks) latest = std::max(latest, rank.last_life);
  std::string text = "rank  host              process  last sign of life  what it did last\n";
  for (const RankTrace& rank : trace.ranks) {
    const Record* last = rank.last();
    std::string what = last == nullptr ? "nothing yet" : text_of(*last);
    if (last != nullptr && last->outcome() == Outcome::started) what = "in " + what;
    if (last != nullptr && last->outcome() == Outcome::failed) what += ", which failed";
    if (last != nullptr && last->outcome() == Outcome::done) what = "after " + what;
    const Activity activity = rank.state.status.activity;
    if (activity != Activity::running) what.append(" (").append(name_of(activity)).append(")");
    text += formatted("%4d  %-16s %8lld  %15.3f s  ", rank.rank, rank.host.c_str(),
                      static_cast<long long>(rank.process), rank.last_life - latest) +
            what + "\n";
  }
  return text;
}

}  // namespace

const Record* RankTrace::last() const noexcept {
  const Record* pending = state.pending();
  return pending != nullptr || state.trail.empty() ? pending : &state.trail.back();
}

Trace read_trace(std::span<const fs::path> places) {
  Trace trace;
  // One bad file of a folder must not hide the others; one that was asked for by name is an error.
  const auto unless_damaged = [&](const fs::path& path, const auto& read) {
    try {
      read();
    } catch (const InputError& error) {
      if (std::ranges::find(places, path) != places.end()) throw;
      trace.notes.push_back(std::string(error.what()) + "; it is left out");
    }
  };
  std::vector<std::pair<fs::path, std::unique_ptr<RecordFile>>> files;
  for (const fs::path& path : files_of(places))
    unless_damaged(path, [&] { files.emplace_back(path, read_file(path)); });
  if (files.empty()) throw InputError(trace.notes.front());
  const auto newest = std::max_element(files.begin(), files.end(), [](const auto& a, const auto& b) {
    return a.second->head.wall_nanoseconds < b.second->head.wall_nanoseconds;
  });
  trace.job = newest->second->head.job;
  trace.size = newest->second->head.size;
  std::map<int, RankTrace> ranks;
  for (const auto& [path, file] : files) {
    if (file->head.job != trace.job)
      trace.notes.push_back(shown(path) + " is left out: it is of another job than " + shown(newest->first));
    else
      unless_damaged(path, [&, &path = path, &file = file] {
        if (!ranks.emplace(file->head.rank, trace_of(path, *file)).second)
          trace.notes.push_back(shown(path) + " is left out: there is another record of its rank");
      });
  }
  if (ranks.empty()) throw InputError(trace.notes.front());
  for (int rank = 0; rank < trace.size; ++rank)
    if (!ranks.contains(rank)) trace.missing.push_back(rank);
  for (auto& [rank, one] : ranks) trace.ranks.push_back(std::move(one));
  return trace;
}

Explanation explain(const Trace& trace) {
  Explanation explanation;
  const std::vector<RankReport> reports = reports_of(trace);
  explanation.divergence = first_divergence(reports);
  explanation.last_to_come = last_to_come(trace);
  std::string& text = explanation.text;
  text = formatted("records of %zu of %d ranks", trace.ranks.size(), trace.size);
  if (!trace.missing.empty()) text += "; there is none of " + ranks_text(trace.missing);
  text += "\n" + table(trace);

  const bool all_ended =
      std::all_of(trace.ranks.begin(), trace.ranks.end(), [](const RankTrace& rank) { return rank.ended; });
  const bool somebody_waits = std::any_of(reports.begin(), reports.end(), [](const RankReport& report) {
    return report.answer == RankReport::Answer::yes && report.state->pending() != nullptr;
  });
  if (somebody_waits || explanation.divergence) {
    const Diagnosis diagnosis = diagnose(reports);
    explanation.late = diagnosis.late;
    if (!diagnosis.collective.empty()) text += diagnosis.collective + " stood still: ";
    text += diagnosis.text + "\n";
  } else {
    const char* const who = trace.missing.empty() ? "all" : "these";
    text += all_ended ? std::string(who) + " came to the end in good order\n" : "nobody waited for another\n";
  }
  for (const Lateness& late : explanation.last_to_come)
    text += formatted("rank %d was the last to come to %zu of %zu collectives, %.3f ms after the first on average\n",
                      late.rank, late.times, late.of, 1e3 * late.seconds);
  return explanation;
}

}  // namespace ronda
