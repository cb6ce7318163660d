// The recorder, what is concluded from records, and watchdogs, with ranks as objects of one process and without MPI.
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_clock.hpp"

#include <ronda/collectives/watch/diagnosis.hpp>
#include <ronda/collectives/watch/record_view.hpp>
#include <ronda/collectives/watch/recorder.hpp>
#include <ronda/collectives/watch/trace.hpp>
#include <ronda/collectives/watch/watchdog.hpp>
#include <ronda/collectives/watch/watchdog_thread.hpp>
#include <ronda/core/error.hpp>

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <fstream>
#include <future>
#include <map>
#include <optional>
#include <thread>

namespace ronda::watch_test {
namespace {

namespace fs = std::filesystem;
using Answer = RankReport::Answer;

class Folder : public test::Folder {
 public:
  Folder() : test::Folder("watch") {}
};

Description bucket(int number) {
  return {Kind::allreduce, "bucket " + std::to_string(number), "ring", 512, DType::float32};
}

// Records -------------------------------------------------------------------------------------------------------------

TEST_CASE("what goes on while nothing happens does not push out what happened") {
  const Folder folder;
  Ledger ledger{std::make_shared<Recorder>(folder.path(), false, 0, 1)};
  const auto run = [&](const Description& description) { ledger.end(ledger.begin(description), Outcome::done); };
  Description cycle(Kind::allreduce, "the cycle", "node", 4, DType::int64);
  cycle.idles = true;
  run(bucket(0));
  for (int i = 0; i < 5000; ++i) run(cycle);
  run(bucket(1));
  for (int i = 0; i < 3; ++i) run(bucket(2));
  run(cycle);
  const std::uint64_t failed = ledger.begin(cycle);
  ledger.end(failed, Outcome::failed);
  run(cycle);  // of one that failed there is a record
  static_cast<void>(ledger.begin(cycle));

  const auto view = RecordView::open(record_path(folder.path(), 0));
  REQUIRE(view != nullptr);
  const RankState state = view->state(record_ring).value();
  std::vector<std::string> labels;
  for (const Record& record : state.trail) labels.emplace_back(record.label.view());
  CHECK(labels == std::vector<std::string>{"bucket 0", "the cycle", "bucket 1", "bucket 2", "bucket 2", "bucket 2",
                                           "the cycle", "the cycle"});
  CHECK(state.trail[1].number == 5001);
  CHECK(state.trail[6].outcome() == Outcome::failed);
  REQUIRE(state.pending() != nullptr);
  CHECK(state.pending()->number == state.trail.back().number);
}

TEST_CASE("what is recorded can be read by others while it is written, the latest of a long run") {
  const Folder folder;
  Ledger ledger{std::make_shared<Recorder>(folder.path(), false, 2, 4)};
  const auto view = RecordView::open(record_path(folder.path(), 2));
  REQUIRE(view != nullptr);
  const int runs = 3 * static_cast<int>(record_ring);
  std::thread writer([&] {
    for (int run = 0; run < runs; ++run) ledger.end(ledger.begin(bucket(run)), Outcome::done);
  });
  for (int look = 0; look < 200; ++look) {
    std::uint64_t before = 0;
    const RankState state = view->state(record_ring).value();
    for (const Record& record : state.trail) {
      REQUIRE(record.index > before);
      REQUIRE(record.label.view() == "bucket " + std::to_string(record.index - 1));  // none is torn
      before = record.index;
    }
  }
  writer.join();
  const RankState state = view->state(10).value();
  CHECK(state.status.rank == 2);
  REQUIRE(state.trail.size() == 10);
  CHECK(state.trail.back().number == static_cast<std::uint64_t>(runs));
  CHECK(state.trail.back().outcome() == Outcome::done);
  CHECK(contents_of(state.trail.back()) == "allreduce of 512 float32, sum");
  CHECK(state.pending() == nullptr);
  CHECK_FALSE(view->abandoned());
}

TEST_CASE("every operation is read again as it was written") {
  const Folder folder;
  const std::vector<std::string> names{"sum", "mean", "min", "max", "prod", "and"};
  {
    const auto recorder = std::make_shared<Recorder>(folder.path(), true, 0, 1);
    Ledger ledger{recorder};
    for (const auto& name : names)
      ledger.end(ledger.begin({Kind::allreduce, name, "ring", 4, DType::int64, parse_reduce_op(name)}), Outcome::done);
  }
  const std::vector<fs::path> places{folder.path()};
  const Trace trace = read_trace(places);
  REQUIRE(trace.ranks.size() == 1);
  REQUIRE(trace.ranks[0].spans.size() == names.size());
  for (std::size_t i = 0; i < names.size(); ++i) CHECK(name_of(trace.ranks[0].spans[i].record.op()) == names[i]);
}

TEST_CASE("whom a rank waited for is forgotten when it goes on") {
  const Folder folder;
  Recorder recorder(folder.path(), false, 0, 2);
  const std::vector<int> other{1};
  const auto waits_for = [&] { return state_of(recorder.file(), 1).status.missing_count; };
  recorder.stands_still();
  recorder.waits_for(other);
  CHECK(waits_for() == 1);
  recorder.moved();
  CHECK(waits_for() == 0);
  recorder.waits_for(other);
  recorder.inside_mpi(true);
  CHECK(waits_for() == 0);
}

TEST_CASE("a record is there after its process, until a good end removes it") {
  const Folder folder;
  const fs::path path = record_path(folder.path(), 0);
  { const Recorder kept(folder.path(), true, 0, 1); }
  CHECK(fs::exists(path));
  CHECK(RecordView::open(path)->abandoned());
  { const Recorder removed(folder.path(), false, 0, 1); }
  CHECK_FALSE(fs::exists(folder.path()));
  CHECK(RecordView::open(path) == nullptr);
  CHECK_THROWS_AS(Recorder("/proc/nowhere", false, 0, 1), InputError);
}

TEST_CASE("clocks: ticks become time") {
  const Folder folder;
  Recorder recorder(folder.path(), false, 0, 1);
  const auto before = recorder.ticks();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto after = recorder.ticks();
  recorder.beat();
  const RecordHead& head = recorder.file().head;
  const double milliseconds = 1e-6 * static_cast<double>(nanoseconds_of(after, head) - nanoseconds_of(before, head));
  CHECK(milliseconds >= 45);
}

TEST_CASE("records of jobs that are dead are removed, but for the latest few") {
  const Folder folder;
  const auto job = [&](int number) { return folder.path() / std::to_string(number); };
  for (int number = 0; number < 8; ++number) {
    { const Recorder dead(job(number), true, 0, 1); }
    fs::last_write_time(job(number), fs::file_time_type::clock::now() + std::chrono::seconds(number));
  }
  const Recorder alive(job(0), true, 0, 1);
  fs::last_write_time(job(0), fs::file_time_type::clock::now() - std::chrono::hours(1));
  remove_old_records(job(7));
  CHECK(fs::exists(job(0)));  // old, but alive
  CHECK_FALSE(fs::exists(job(1)));
  CHECK_FALSE(fs::exists(job(2)));
  for (int number = 3; number < 8; ++number) CHECK(fs::exists(job(number)));
}

TEST_CASE("records find a place where others have taken their folder's name, the same for all ranks and later jobs") {
  const Folder folder;
  fs::create_directories(folder.path());
  const fs::path named = record_folder_in(folder.path()).value().parent_path();
  CHECK(named.filename().string() == "ronda-" + std::to_string(::geteuid()));
  const auto taken = [&](const auto& take) {
    fs::remove_all(named);
    take();
    const auto found = record_folder_in(folder.path());
    REQUIRE(found);
    const fs::path parent = found->parent_path();
    CHECK(parent != named);
    CHECK((fs::symlink_status(parent).permissions() & fs::perms::mask) == fs::perms::owner_all);
    CHECK(record_folder_in(folder.path()) == found);
    const Recorder recorder(*found, true, 0, 2);
    CHECK(RecordView::open(record_path(*record_folder_in(folder.path()), 0)) != nullptr);
    return parent;
  };
  const fs::path first = taken([&] {  // as others can write there, it may as well be theirs
    fs::create_directory(named);
    fs::permissions(named, fs::perms::all);
  });
  CHECK(taken([&] { fs::create_directory_symlink("/tmp", named); }) == first);
  CHECK(taken([&] { std::ofstream(named) << "a file"; }) == first);
  fs::permissions(first, fs::perms::all);  // so this is not its user's alone any more
  const fs::path second = taken([&] { std::ofstream(named) << "a file"; });
  CHECK(second != first);
}

TEST_CASE("ranks that look for a folder at once, where others have taken its name, find the same") {
  for (int round = 0; round < 50; ++round) {
    const Folder folder;
    fs::create_directories(folder.path());
    std::ofstream(folder.path() / ("ronda-" + std::to_string(::geteuid()))) << "a file";
    std::barrier start(4);
    std::vector<std::future<std::optional<fs::path>>> ranks;
    for (int rank = 0; rank < 4; ++rank)
      ranks.push_back(std::async(std::launch::async, [&] {
        start.arrive_and_wait();
        return record_folder_in(folder.path());
      }));
    const auto first = ranks[0].get();
    REQUIRE(first);
    for (std::size_t rank = 1; rank < ranks.size(); ++rank) REQUIRE(ranks[rank].get() == first);
  }
}

TEST_CASE("who holds a lock on the place keeps nobody from a folder") {
  const Folder folder;
  fs::create_directories(folder.path());
  std::ofstream(folder.path() / ("ronda-" + std::to_string(::geteuid()))) << "a file";
  const int held = ::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(::flock(held, LOCK_EX) == 0);
  const auto found = record_folder_in(folder.path());
  CHECK(found);
  ::close(held);
  CHECK(record_folder_in(folder.path()) == found);
}

TEST_CASE("jobs of several containers keep their records apart, whatever their launchers call them") {
  const Folder place;
  fs::create_directories(place.path());
  const auto own = record_folder_in(place.path());
  REQUIRE(own.has_value());
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t container = ::fork();
  if (container == 0) {
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(77);
    const pid_t rank = ::fork();
    if (rank == 0) {
      const std::string folder = record_folder_in(place.path()).value_or("").string();
      ::_exit(::write(ends[1], folder.data(), folder.size()) > 0 ? 0 : 1);
    }
    int status = 0;
    ::waitpid(rank, &status, 0);
    ::_exit(WEXITSTATUS(status));
  }
  int status = 0;
  ::waitpid(container, &status, 0);
  ::close(ends[1]);
  std::array<char, 4096> text{};
  const auto length = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  if (WEXITSTATUS(status) == 77) return;  // a user may not make one
  REQUIRE(length > 0);
  CHECK(std::string(text.data(), static_cast<std::size_t>(length)) != own->string());
}

TEST_CASE("a record that has taken another's place is neither told of that one's end nor removed by it") {
  const Folder folder;
  auto first = std::make_unique<Recorder>(folder.path(), false, 0, 2);
  first->met(0, 2, 5);
  Recorder second(folder.path(), false, 0, 2);
  second.met(0, 2, 6);
  tell_over(second.path(), 5);
  CHECK_FALSE(second.told_over());
  first.reset();
  REQUIRE(fs::exists(second.path()));
  tell_over(second.path(), 6);
  CHECK(second.told_over());
}

TEST_CASE("no records are kept where others can take their folder away") {
  const Folder folder;
  fs::create_directories(folder.path());
  fs::permissions(folder.path(), fs::perms::all);
  CHECK_FALSE(record_folder_in(folder.path()));
  fs::permissions(folder.path(), fs::perms::all | fs::perms::sticky_bit);
  CHECK(record_folder_in(folder.path()));
  CHECK_FALSE(record_folder_in(folder.path() / "nowhere"));
}

// Conclusions ---------------------------------------------------------------------------------------------------------

/// A rank that has done `done` collectives, by their labels, and waits in `pending`.
RankReport rank_at(int rank, std::vector<int> done, int pending, Answer answer = Answer::yes) {
  RankReport report{rank, "host" + std::to_string(rank), answer, RankState()};
  done.push_back(pending);
  for (const int label : done) {
    Record record = bucket(label).run;
    record.number = record.index = report.state->trail.size() + 1;
    record.step = 7;
    if (report.state->trail.size() + 1 < done.size()) record.what |= std::uint64_t{1} << 24;
    report.state->trail.push_back(record);
  }
  report.state->status.rank = rank;
  report.state->status.still = true;
  return report;
}

RankReport working(RankReport report) {
  report.state->status.still = false;
  for (Record& record : report.state->trail)
    if (record.outcome() == Outcome::started) record.what |= std::uint64_t{1} << 24;
  return report;
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

TEST_CASE("late is who waits for nobody, or gives no sign of life") {
  std::vector<RankReport> ranks{rank_at(0, {0, 1}, 2), working(rank_at(1, {0, 1}, 1)), rank_at(2, {0, 1}, 2)};
  ranks[1].state->trail.pop_back();
  Diagnosis diagnosis = diagnose(ranks);
  CHECK(diagnosis.late == std::vector<int>{1});
  CHECK(diagnosis.collective == "bucket 2 by ring of step 7");
  CHECK(has(diagnosis.text, "waiting for rank 1 on host1: it is at its own work"));
  CHECK_FALSE(diagnosis.excused);

  ranks[1].answer = Answer::dead;
  CHECK(has(diagnose(ranks).text, "rank 1 on host1: its process is dead, last seen after bucket 1"));
  ranks[1].answer = Answer::none;
  ranks[1].state.reset();
  CHECK(has(diagnose(ranks).text, "rank 1 on host1: nothing is heard from it"));
}

TEST_CASE("a rank that waits for what it began before its latest records is not late") {
  std::vector<RankReport> ranks{rank_at(0, {0, 1}, 2), working(rank_at(1, {0, 1}, 1)), rank_at(2, {0, 1}, 2)};
  for (RankReport& report : ranks)
    for (Record& record : report.state->trail)
      record.number = 0;  // messages between two ranks have no place in an order
  ranks[0].state->status.missing_count = 1;
  ranks[0].state->status.missing[0] = 1;
  RankStatus& status = ranks[1].state->status;
  status.still = true;  // a message that rank 2 does not send
  status.missing_count = 1;
  status.missing[0] = 2;
  ranks[2].answer = Answer::stopped;
  CHECK(diagnose(ranks).late == std::vector<int>{2});
  CHECK(has(diagnose(ranks).text, "waiting for rank 2 on host2: its process is stopped"));
}

TEST_CASE("a rank at work that may take long is excused for as long as it may") {
  std::vector<RankReport> ranks{rank_at(0, {0}, 1), working(rank_at(1, {}, 0))};
  RankStatus& status = ranks[1].state->status;
  status.activity = Activity::writing;
  status.activity_limit = 600;
  status.activity_seconds = 61;
  CHECK(diagnose(ranks).excused);
  CHECK(has(diagnose(ranks).text, "it has been writing for 61 s"));
  status.activity_seconds = 601;
  CHECK_FALSE(diagnose(ranks).excused);
  status.activity_seconds = 61;
  ranks[1].answer = Answer::stopped;
  CHECK_FALSE(diagnose(ranks).excused);
}

TEST_CASE("ranks that went different ways: the first place where they differ, and those that are few") {
  const std::vector<RankReport> ranks{rank_at(0, {0, 1, 2}, 3), rank_at(1, {0, 1, 2}, 3), rank_at(2, {0, 2}, 3)};
  const auto divergence = first_divergence(ranks);
  REQUIRE(divergence);
  CHECK(divergence->number == 2);
  CHECK(divergence->odd == std::vector<int>{2});
  CHECK(has(diagnose(ranks).text, "collective 2 is bucket 1 by ring of step 7"));
  CHECK(has(diagnose(ranks).text, "on ranks 0 and 1, and bucket 2 by ring of step 7"));
  CHECK(diagnose(ranks).late == std::vector<int>{2});
}

TEST_CASE("ranks that all wait in the same collective: the network") {
  std::vector<RankReport> ranks{rank_at(0, {0}, 1), rank_at(1, {0}, 1)};
  ranks[0].state->status.missing_count = ranks[1].state->status.missing_count = 1;
  ranks[0].state->status.missing[0] = 1;
  const Diagnosis diagnosis = diagnose(ranks);
  CHECK(diagnosis.late.empty());
  CHECK(has(diagnosis.text, "is the network between their hosts cut? rank 0 on host0 waits for rank 1, rank 1 on"));
}

TEST_CASE("of those that are not there only the ones that somebody waits for are late") {
  std::vector<RankReport> ranks{rank_at(0, {0}, 1), working(rank_at(1, {0}, 1)), working(rank_at(2, {0}, 1))};
  ranks[0].state->status.missing_count = 1;
  ranks[0].state->status.missing[0] = 2;
  CHECK(diagnose(ranks).late == std::vector<int>{2});
}

RankReport in_group(std::uint64_t group, RankReport report) {
  for (Record& record : report.state->trail) record.group = group;
  return report;
}

void wants(RankReport& report, int rank) {
  report.state->status.missing_count = 1;
  report.state->status.missing[0] = rank;
}

TEST_CASE("ranks of other groups are not late, and excuse nobody") {
  std::vector<RankReport> ranks{in_group(5, rank_at(0, {0}, 1)), in_group(5, working(rank_at(1, {}, 0))),
                                in_group(6, working(rank_at(2, {0}, 1))), in_group(6, rank_at(3, {0}, 1))};
  RankStatus& status = ranks[1].state->status;
  status.activity = Activity::writing;
  status.activity_limit = 600;
  status.activity_seconds = 2;
  wants(ranks[3], 2);  // for a moment
  CHECK(diagnose(ranks).late == std::vector<int>{1});
  CHECK(diagnose(ranks).excused);
}

TEST_CASE("what stands still is named, and not what another group waits for at the moment") {
  std::vector<RankReport> ranks{in_group(5, rank_at(0, {0}, 1)), in_group(5, working(rank_at(1, {0}, 1))),
                                in_group(6, rank_at(2, {0}, 2)), in_group(6, working(rank_at(3, {0}, 2)))};
  ranks[2].state->status.alarmed = true;
  const Diagnosis diagnosis = diagnose(ranks);
  CHECK(diagnosis.collective == "bucket 2 by ring of step 7");
  CHECK(diagnosis.late == std::vector<int>{3});
}

TEST_CASE("late is also whom those wait for who are waited for") {
  std::vector<RankReport> ranks{in_group(5, rank_at(0, {0}, 1)), in_group(6, rank_at(1, {0}, 2)),
                                in_group(6, working(rank_at(2, {0}, 2))), in_group(5, working(rank_at(3, {0}, 1)))};
  wants(ranks[0], 1);
  wants(ranks[1], 2);
  CHECK(diagnose(ranks).late == std::vector<int>{2});
}

TEST_CASE("lists of ranks stay short") {
  const std::vector<int> few{3}, some{0, 1, 4}, many{0, 1, 2, 3, 4, 5, 6};
  CHECK(ranks_text(few) == "rank 3");
  CHECK(ranks_text(some) == "ranks 0, 1 and 4");
  CHECK(ranks_text(many) == "ranks 0, 1, 2, 3 and 3 more");
}

// Watchdogs -----------------------------------------------------------------------------------------------------------

/// Some ranks, in one process, with a watchdog each, on a clock that the test moves.
class Job {
 public:
  static constexpr double look = 1.0 / 16;  ///< seconds from one tick to the next

  explicit Job(int ranks, double timeout = 0.2) : stalls_(static_cast<std::size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) {
      auto recorder = std::make_shared<Recorder>(folder_.path(), false, rank, ranks, "", clock_);
      Watchdog::Options options{timeout, true, [&stall = stalls_[static_cast<std::size_t>(rank)]](const Stall& told) {
                                  REQUIRE_FALSE(stall);
                                  stall = told;
                                }};
      ledgers_.push_back({recorder});
      dogs_.push_back(std::make_unique<Watchdog>(recorder, options));
    }
  }
  void meet_on_one_host() {
    HostNames hosts;
    std::map<int, std::string> records;
    for (std::size_t rank = 0; rank < dogs_.size(); ++rank) {
      hosts.add({});
      records[static_cast<int>(rank)] = recorder(rank).path().string();
      recorder(rank).met(static_cast<int>(rank), static_cast<int>(dogs_.size()), 42);
    }
    for (const auto& dog : dogs_) dog->meet(hosts, records, nullptr);
  }
  /// On hosts of their own, which the ranks of another see by datagrams alone.
  void meet_over_network() {
    std::vector<std::unique_ptr<SideChannel>> channels;
    HostNames hosts;
    for (std::size_t rank = 0; rank < dogs_.size(); ++rank) {
      channels.push_back(std::make_unique<SideChannel>());
      hosts.add("host" + std::to_string(rank));
    }
    std::vector<std::string> addresses;
    std::vector<int> host_of;
    for (const auto& channel : channels) {
      addresses.push_back(channel->address());
      host_of.push_back(static_cast<int>(host_of.size()));
    }
    const SipKey key = SipKey::random().value();
    for (std::size_t rank = 0; rank < dogs_.size(); ++rank) {
      channels[rank]->meet(static_cast<int>(rank), key, host_of, addresses);
      recorder(rank).met(static_cast<int>(rank), static_cast<int>(dogs_.size()), 42);
      dogs_[rank]->meet(hosts, {{static_cast<int>(rank), {}}}, std::move(channels[rank]));
    }
  }
  void wait_in(std::size_t rank, int label) {
    ledgers_[rank].begin(bucket(label));
    recorder(rank).stands_still();
  }
  /// The first `ranks` watchdogs look for so long; the other processes are stopped.
  void run(double seconds, std::size_t ranks = 1000) {
    for (const double end = clock_.now() + seconds; clock_.now() < end;) {
      clock_.advance(look);
      for (std::size_t rank = 0; rank < std::min(ranks, dogs_.size()); ++rank) dogs_[rank]->tick(clock_.now());
    }
  }
  /// All processes are stopped for so long.
  void stop(double seconds) { clock_.advance(seconds); }
  [[nodiscard]] Recorder& recorder(std::size_t rank) { return *ledgers_[rank].recorder; }
  [[nodiscard]] Watchdog& dog(std::size_t rank) { return *dogs_[rank]; }
  [[nodiscard]] bool stalled(std::size_t rank) const { return stalls_[rank].has_value(); }
  [[nodiscard]] Stall stall(std::size_t rank) const {
    REQUIRE(stalled(rank));
    return *stalls_[rank];
  }
  [[nodiscard]] bool alarmed(std::size_t rank) { return recorder(rank).file().head.alarmed != 0; }

 private:
  Folder folder_;
  test::TestClock clock_;
  std::vector<std::optional<Stall>> stalls_;
  std::vector<Ledger> ledgers_;
  std::vector<std::unique_ptr<Watchdog>> dogs_;
};

void expect_first_speaks(const Job& job, const std::string& about) {
  const Stall first = job.stall(0);
  CHECK(first.speaks);
  CHECK(has(first.message, about));
  CHECK(has(first.message, "ronda_trace /"));
  CHECK_FALSE(job.stall(1).speaks);
  CHECK_FALSE(job.stall(2).speaks);
}

TEST_CASE("a stalled collective is reported when the timeout is over, and not before") {
  Job job(2, 60);
  job.meet_on_one_host();
  job.run(Job::look);
  job.wait_in(0, 5);
  job.run(60);
  CHECK_FALSE(job.alarmed(0));
  job.run(Job::look);
  CHECK(job.alarmed(0));
  job.run(1.5 - Job::look);  // others on this host are given that time to report
  CHECK_FALSE(job.stalled(0));
  CHECK(job.dog(0).verdict() == nullptr);
  job.run(Job::look);
  CHECK(has(job.stall(0).message,
            "bucket 5 by ring has stood still for 60 s, waiting for rank 1: it is at its own work"));
  CHECK(job.dog(0).verdict() != nullptr);
  job.run(10);  // each rank is told once
  CHECK_FALSE(job.stall(1).speaks);
}

TEST_CASE("time in which nothing could look does not count as waiting") {
  Job job(2, 60);
  job.meet_on_one_host();
  job.run(Job::look);
  job.wait_in(0, 5);
  job.run(59);
  job.stop(1000);
  job.run(Job::look);
  CHECK_FALSE(job.alarmed(0));
  job.run(0.5);
  CHECK(job.alarmed(0));
}

TEST_CASE("a process counts as stopped when it has given no beat for a second and a half, and not before") {
  const double timeout = 2, until_told = timeout + Job::look + 1.5;
  for (const bool late : {false, true}) {
    Job job(2, timeout);
    job.meet_on_one_host();
    job.run(Job::look);
    job.wait_in(0, 5);
    const double beats_for = until_told - 1.5 + (late ? 0 : Job::look);
    job.run(beats_for);
    job.run(until_told - beats_for, 1);
    CHECK(has(job.stall(0).message, late ? "its process is stopped" : "it is at its own work"));
  }
}

TEST_CASE("watchdogs on a host: the lowest rank tells whom all wait for, and all hear of it") {
  Job job(3);
  job.wait_in(0, 5);
  job.wait_in(1, 5);
  job.run(10);
  expect_first_speaks(job, "bucket 5 by ring has stood still for 2 s, waiting for rank 2: it is at its own work");
  CHECK(job.dog(0).verdict() != nullptr);
}

TEST_CASE("watchdogs of different hosts tell each other by datagrams") {
  Job job(3);
  job.meet_over_network();
  job.wait_in(0, 5);
  job.wait_in(1, 5);
  job.recorder(2).set_step(3);
  job.run(10);
  expect_first_speaks(job, "waiting for rank 2 on host2: it is at its own work");
  CHECK(job.dog(1).unheard().empty());
}

TEST_CASE("what was found while a process was started late is forgotten when the ranks have met") {
  Job job(2, 0.05);
  job.wait_in(0, 5);
  job.run(10);
  CHECK_FALSE(job.stall(0).message.empty());
  CHECK(job.dog(0).verdict() != nullptr);
  job.recorder(0).moved();
  job.meet_over_network();
  CHECK(job.dog(0).verdict() == nullptr);
  CHECK(job.recorder(0).file().head.over == 0);
  CHECK_FALSE(job.recorder(1).told_over());
}

TEST_CASE("who ends the job has told the ranks of its host when it goes on") {
  Job job(2, 60);
  job.dog(1).end("rank 1: what it has found");
  CHECK(job.recorder(0).told_over());
  job.run(Job::look);
  const Stall stall = job.stall(1);
  CHECK(stall.speaks);
  CHECK(stall.message == "rank 1: what it has found");
  CHECK_FALSE(job.stall(0).speaks);
}

TEST_CASE("who hears of a stall on the watchdog's thread may ask the watchdog what it knows") {
  const Folder folder;
  const auto recorder = std::make_shared<Recorder>(folder.path(), false, 0, 2);
  std::promise<std::vector<int>> asked;
  Watchdog* dog = nullptr;
  const auto watchdog = std::make_shared<Watchdog>(
      recorder, Watchdog::Options{0.1, true, [&](const Stall&) { asked.set_value(dog->unheard()); }});
  dog = watchdog.get();
  Ledger ledger{recorder};
  ledger.begin(bucket(1));
  recorder->stands_still();
  WatchdogThread thread(watchdog);
  CHECK(thread.divergence().empty());
  auto answer = asked.get_future();
  REQUIRE(answer.wait_for(std::chrono::seconds(30)) == std::future_status::ready);
  CHECK(answer.get().empty());
}

TEST_CASE("records of ranks with one number, of two worlds in one job, stay apart") {
  const Folder folder;
  const Recorder one(folder.path(), false, 0, 1, "a"), other(folder.path(), false, 0, 1, "b");
  CHECK(one.path() != other.path());
  CHECK(RecordView::open(one.path()) != nullptr);
  CHECK(RecordView::open(other.path()) != nullptr);
}

TEST_CASE("what an earlier job has left in the folder is not this one's") {
  const Folder folder;
  { Recorder(folder.path(), true, 1, 2).set_over(true); }
  bool ended = false;
  const test::TestClock clock;
  Watchdog early(std::make_shared<Recorder>(folder.path(), false, 0, 2, "", clock),
                 {60, true, [&](const Stall&) { ended = true; }});
  for (int second = 1; second <= 5; ++second) early.tick(clock.now() + second);
  CHECK_FALSE(ended);
}

TEST_CASE("nothing is said as long as things move") {
  Job job(2, 0.3);
  job.meet_on_one_host();
  for (int i = 0; i < 30; ++i) {
    job.recorder(0).stands_still();
    job.run(0.25);
    job.recorder(0).moved();
  }
  CHECK_FALSE(job.alarmed(0));
  CHECK(job.dog(0).verdict() == nullptr);
  CHECK_FALSE(job.dog(0).asked());
}

}  // namespace
}  // namespace ronda::watch_test
