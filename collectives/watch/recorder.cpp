#include <ronda/collectives/watch/record_view.hpp>
#include <ronda/collectives/watch/recorder.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/core/process.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace ronda {
namespace {

namespace fs = std::filesystem;

/// Of a job that has ended badly; enough to look at the last one, and the one before.
constexpr std::size_t kept_jobs = 4;
/// A brief collective looks at the clock this seldom.
constexpr std::uint64_t seldom = 16;

std::uint64_t nanoseconds_of(const Clock& clock) { return static_cast<std::uint64_t>(clock.now() * 1e9); }

/// Since 1970.
std::uint64_t wall_nanoseconds() {
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

/// The processor counts at one speed on all cores, whatever they do.
bool has_steady_counter() noexcept {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1U << 8)) != 0;
#else
  return false;
#endif
}

/// Number of this process's PID namespace; empty if the system does not give it.
std::string process_table() {
  std::error_code error;
  const std::string link = fs::read_symlink("/proc/self/ns/pid", error);  // pid:[4026531836]
  std::string number;
  std::ranges::copy_if(link, std::back_inserter(number), [](unsigned char c) { return std::isdigit(c) != 0; });
  return number;
}

/// The launcher's name for this job: the same for its ranks on this host, another for the next job. Launchers make it
/// from their process number, which may be the same in several containers on one /dev/shm, so the name includes the PID
/// namespace.
std::string job_name() {
  std::string name;
  for (const char* variable : {"PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID"})
    if (const char* text = std::getenv(variable)) name += (name.empty() ? "" : ".") + std::string(text);
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.') c = '-';
  if (name.empty()) name = "launcher." + std::to_string(::getppid());
  const std::string table = process_table();
  return table.empty() ? name : name + "." + table;
}

/// This process's program, without its folder, and its arguments.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline");
  std::string line, words;
  for (std::string word; std::getline(file, word, '\0');)
    words += words.empty() ? fs::path(word).filename().string() : " " + word;
  return words;
}

/// A folder of this user's that nobody else can write to, and no link to one.
bool is_own_folder(const fs::path& folder) {
  struct stat status {};
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
         (status.st_mode & 022) == 0;
}

/// What is made in `place` stays this user's: others cannot write there, or only remove what is their own.
bool keeps_what_is_made(const fs::path& place) {
  struct stat status {};
  if (::stat(place.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || ::access(place.c_str(), W_OK | X_OK) != 0)
    return false;
  const bool sticky = (status.st_mode & S_ISVTX) != 0, shared = (status.st_mode & 022) != 0;
  return (status.st_uid == ::geteuid() || status.st_uid == 0) && (sticky || !shared);
}

/// The first folder of a random name in `place` that is this user's.
std::optional<fs::path> find_own_folder(const fs::path& place, const std::string& name) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(place, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename().string().starts_with(name + ".") && is_own_folder(entry->path()))
      found.push_back(entry->path());
  if (found.empty()) return {};
  return *std::ranges::min_element(found);
}

/// A lock on `place`: one process at a time makes a folder there. Another user can hold this lock too, so after a
/// second of waiting the process goes on without it.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& place) : descriptor_(::open(place.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    constexpr auto pause = std::chrono::milliseconds(1);
    for (int tries = 0; descriptor_ >= 0 && tries < 1000 && ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0; ++tries)
      std::this_thread::sleep_for(pause);
  }
  FolderLock(const FolderLock&) = delete;
  ~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

 private:
  int descriptor_;
};

/// The folder of a random name in `place`, which is made if there is none yet.
std::optional<fs::path> own_folder_of_random_name(const fs::path& place, const std::string& name) {
  if (auto folder = find_own_folder(place, name)) return folder;
  const FolderLock lock(place);
  if (auto folder = find_own_folder(place, name)) return folder;
  std::string made = (place / (name + ".XXXXXX")).string();
  if (::mkdtemp(made.data()) == nullptr) return {};
  return made;
}

/// A store that misses the cache holds up those behind it, for which other ranks wait.
void fetch_ahead(const Record& next) noexcept {
  __builtin_prefetch(&next.index, 1);
  __builtin_prefetch(&next.count + 1, 1);  // the other line
}

/// Copies the words of a record from `first` on, each whole.
void store_words(Record& to, const Record& from, std::size_t first) noexcept {
  const auto* source = reinterpret_cast<const std::uint64_t*>(&from);
  auto* target = reinterpret_cast<std::uint64_t*>(&to);
  for (std::size_t i = first; i < sizeof(Record) / sizeof(std::uint64_t); ++i) Recorder::set(target[i], source[i]);
}

}  // namespace

std::string_view name_of(Kind kind) noexcept {
  constexpr std::array<std::string_view, 13> names{"nothing",   "allreduce", "broadcast", "reduce",   "reduce-scatter",
                                                   "allgather", "gather",    "scatter",   "alltoall", "send",
                                                   "receive",   "MPI",       "replay"};
  const auto index = static_cast<std::size_t>(kind);
  return index < names.size() ? names[index] : "?";
}

// Files ---------------------------------------------------------------------------------------------------------------

std::vector<fs::path> record_places() {
  std::vector<fs::path> places{"/dev/shm"};
  if (const char* temporary = std::getenv("TMPDIR"); temporary != nullptr && *temporary != '\0')
    places.emplace_back(temporary);
  places.emplace_back("/tmp");
  return places;
}

std::optional<fs::path> record_folder_in(const fs::path& place) {
  if (!keeps_what_is_made(place)) return {};
  const std::string user = "ronda-" + std::to_string(::geteuid());
  if (::mkdir((place / user).c_str(), 0700) == 0 || is_own_folder(place / user)) return place / user / job_name();
  const auto folder = own_folder_of_random_name(place, user);
  if (!folder) return {};
  return *folder / job_name();
}

bool records_in_use(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const int file = open_plain(entry.path(), O_NOFOLLOW);
    if (file < 0) continue;
    const bool locked = ::flock(file, LOCK_EX | LOCK_NB) != 0;
    ::close(file);
    if (locked) return true;
  }
  return false;
}

void remove_old_records(const fs::path& folder) noexcept try {
  std::vector<std::pair<fs::file_time_type, fs::path>> others;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder.parent_path(), ignored))
    if (entry.path() != folder && entry.is_directory(ignored) && !records_in_use(entry.path()))
      others.emplace_back(entry.last_write_time(ignored), entry.path());
  std::sort(others.rbegin(), others.rend());
  for (std::size_t i = kept_jobs; i < others.size(); ++i) fs::remove_all(others[i].second, ignored);
} catch (...) {  // another time
}

fs::path record_path(const fs::path& folder, int rank, std::string_view apart) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "rank-%04d", rank);
  return folder / std::string(name.data()).append(apart.empty() ? "" : ".").append(apart).append(".ronda");
}

void tell_over(const fs::path& record, std::uint64_t job) noexcept {
  const int file = ::open(record.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return;
  constexpr std::uint64_t yes = 1;
  std::uint64_t its_job = 0;
  constexpr off_t place_of_job = offsetof(RecordFile, head) + offsetof(RecordHead, job);
  struct stat status {};
  if (::fstat(file, &status) == 0 && status.st_uid == ::geteuid() &&
      status.st_size >= static_cast<off_t>(sizeof(RecordFile)) &&
      ::pread(file, &its_job, sizeof its_job, place_of_job) == sizeof its_job && its_job == job)
    static_cast<void>(::pwrite(file, &yes, sizeof yes, offsetof(RecordFile, head) + offsetof(RecordHead, told_over)) ==
                      sizeof yes);
  ::close(file);
}

Recorder::Recorder(const fs::path& folder, bool keep, int rank, int size, std::string_view apart, const Clock& clock)
    : folder_(folder),
      path_(record_path(folder, rank, apart)),
      clock_(clock),
      keep_(keep),
      processor_ticks_(&clock == &steady_clock() && has_steady_counter()) {
  std::error_code error;
  fs::create_directories(folder, error);
  errno = error.value();
  if (error) refuse<InputError>("cannot make the folder of");
  make_file();
  void* const memory = take_memory();
  guard_.emplace(memory, sizeof(RecordFile));
  file_ = new (memory) RecordFile;
  RecordHead& head = file_->head;
  head.rank = rank;
  head.size = size;
  head.process = ::getpid();
  head.launch = Hash().add(job_name()).value();
  head.host = std::string_view(host_name());
  head.program = std::string_view(command_line());
  head.wall_nanoseconds = wall_nanoseconds();
  beat();
  head.first = head.last;
}

template <class Failure>
void Recorder::refuse(const char* what) const {
  const std::string reason = std::strerror(errno);
  if (descriptor_ >= 0) ::close(descriptor_);
  throw Failure(std::string(what) + " " + path_.string() + ": " + reason +
                "; --trace DIR, RONDA_TRACE_DIR or, in a program, WorldOptions::trace names another place");
}

void Recorder::make_file() {
  ::unlink(path_.c_str());  // of an earlier job; who still reads that goes on reading it
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor_ < 0) refuse<InputError>("cannot make");
  while (::flock(descriptor_, LOCK_SH) != 0) {  // who looks whether it is in use has it for a moment
    if (errno == EINTR) continue;
    if (errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOLCK) return;  // this file system has no locks
    const int reason = errno;
    ::unlink(path_.c_str());
    errno = reason;
    refuse<ResourceError>("cannot lock");
  }
}

/// All of it now: where there is no room, a later store would be a SIGBUS.
void* Recorder::take_memory() {
  errno = ::posix_fallocate(descriptor_, 0, sizeof(RecordFile));
  void* memory = errno != 0 ? MAP_FAILED
                            : ::mmap(nullptr, sizeof(RecordFile), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                                     descriptor_, 0);
  if (memory != MAP_FAILED) return memory;
  const int reason = errno;
  ::unlink(path_.c_str());
  errno = reason;
  refuse<ResourceError>("cannot take memory for");
}

/// Whether the path still leads to this record, not to one of another job with the same name.
bool Recorder::is_own_file() const noexcept {
  struct stat own {
  }, there{};
  return ::fstat(descriptor_, &own) == 0 && ::lstat(path_.c_str(), &there) == 0 && own.st_dev == there.st_dev &&
         own.st_ino == there.st_ino;
}

Recorder::~Recorder() {
  guard_.reset();
  ::munmap(file_, sizeof(RecordFile));
  if (!keep_) {
    if (is_own_file()) ::unlink(path_.c_str());
    ::rmdir(folder_.c_str());  // by the last
  }
  ::close(descriptor_);
}

void Recorder::met(int rank, int size, std::uint64_t job) noexcept {
  RecordHead& head = file_->head;
  set(head.met_ticks, ticks());
  std::atomic_ref(head.rank).store(rank, std::memory_order_relaxed);
  std::atomic_ref(head.size).store(size, std::memory_order_relaxed);
  set(head.job, job);
}

// Clocks --------------------------------------------------------------------------------------------------------------

std::uint64_t Recorder::ticks() const noexcept {
#if defined(__x86_64__)
  if (processor_ticks_) return __rdtsc();
#endif
  return nanoseconds_of(clock_);
}

void Recorder::beat() noexcept {
  set(file_->head.last.nanoseconds, nanoseconds_of(clock_));
  set(file_->head.last.ticks, ticks());
}

// What happens --------------------------------------------------------------------------------------------------------

bool Recorder::idles_again(const Description& description) const noexcept {
  if (!description.idles || recorded_ == 0) return false;
  const Record& before = file_->ring[recorded_ % record_ring];
  Record like = description.run;
  like.what |= static_cast<std::uint64_t>(Outcome::done) << 24;
  return get(before.index) == recorded_ && get(before.what) == like.what && before.label == like.label;
}

std::uint64_t Recorder::begin(const Description& description, std::uint64_t group, std::uint64_t number) noexcept {
  const std::uint64_t index = idles_again(description) ? recorded_ : ++recorded_;
  Record& place = file_->ring[index % record_ring];
  set(place.index, 0);
  std::atomic_thread_fence(std::memory_order_release);
  set(place.number, number);
  set(place.group, group);
  set(place.step, get(file_->head.step));
  set(place.started, description.brief && index % seldom != 0 ? 0 : ticks());
  set(place.ended, 0);
  store_words(place, description.run, offsetof(Record, what) / sizeof(std::uint64_t));
  std::atomic_ref(place.index).store(index, std::memory_order_release);
  set(file_->head.recorded, index);
  fetch_ahead(file_->ring[(index + 1) % record_ring]);
  return index;
}

void Recorder::end(std::uint64_t index, Outcome outcome) noexcept {
  Record& place = file_->ring[index % record_ring];
  if (get(place.index) != index) return;  // so many have started since
  if (get(place.started) != 0) set(place.ended, ticks());
  set(place.what, get(place.what) | static_cast<std::uint64_t>(outcome) << 24);
}

void Recorder::waits_for(std::span<const int> ranks) noexcept {
  RecordHead& head = file_->head;
  const std::size_t count = std::min(ranks.size(), head.missing.size());
  for (std::size_t i = 0; i < count; ++i) set(head.missing[i], static_cast<std::uint64_t>(ranks[i]));
  set(head.missing_count, count);
}

void Recorder::set_activity(Activity activity, std::uint64_t limit_milliseconds, std::uint64_t since) noexcept {
  set(file_->head.activity_limit, limit_milliseconds);
  set(file_->head.activity_since, since);
  set(file_->head.activity, static_cast<std::uint64_t>(activity));
}

}  // namespace ronda
