#include <ronda/collectives/watch/record_view.hpp>
#include <ronda/collectives/watch/recorder.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

namespace ronda {
namespace {

/// Record number `index`, unless it is being written, or has been written over.
std::optional<Record> read(const RecordFile& file, std::uint64_t index) {
  const Record& place = file.ring[index % record_ring];
  auto& guard = const_cast<std::uint64_t&>(place.index);
  if (std::atomic_ref(guard).load(std::memory_order_acquire) != index) return {};
  Record copy;
  const auto* source = reinterpret_cast<const std::uint64_t*>(&place);
  auto* target = reinterpret_cast<std::uint64_t*>(&copy);
  for (std::size_t i = 0; i < sizeof(Record) / sizeof(std::uint64_t); ++i) target[i] = Recorder::get(source[i]);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (std::atomic_ref(guard).load(std::memory_order_relaxed) != index) return {};
  return copy;
}

}  // namespace

const Record* RankState::pending() const noexcept {
  for (const Record& record : trail)
    if (record.outcome() == Outcome::started) return &record;
  return nullptr;
}

std::uint64_t nanoseconds_of(std::uint64_t ticks, const RecordHead& head) noexcept {
  const std::uint64_t first = head.first.ticks, last = Recorder::get(head.last.ticks);
  const std::uint64_t first_time = head.first.nanoseconds, last_time = Recorder::get(head.last.nanoseconds);
  // Before the second look at the clock nothing is known of its speed.
  const double speed =
      last > first ? static_cast<double>(last_time - first_time) / static_cast<double>(last - first) : 1;
  const double since = speed * static_cast<double>(static_cast<std::int64_t>(ticks - first));
  constexpr double centuries = 9e18;  // more is damage, and no number of nanoseconds
  return first_time + static_cast<std::uint64_t>(std::abs(since) < centuries ? static_cast<std::int64_t>(since) : 0);
}

RankState state_of(const RecordFile& file, std::size_t most) {
  const RecordHead& head = file.head;
  RankState state;
  RankStatus& status = state.status;
  status.rank = std::atomic_ref(const_cast<std::int32_t&>(head.rank)).load(std::memory_order_relaxed);
  status.still = Recorder::get(head.still) != 0;
  status.inside_mpi = Recorder::get(head.inside_mpi) != 0;
  status.alarmed = Recorder::get(head.alarmed) != 0;
  status.activity = activity_of(Recorder::get(head.activity));
  status.step = Recorder::get(head.step);
  status.moves = Recorder::get(head.moves);
  status.activity_limit = plausible_seconds(static_cast<double>(Recorder::get(head.activity_limit)) * 1e-3);
  const std::uint64_t since = nanoseconds_of(Recorder::get(head.activity_since), head);
  status.activity_seconds = plausible_seconds(
      static_cast<double>(static_cast<std::int64_t>(Recorder::get(head.last.nanoseconds) - since)) * 1e-9);
  status.missing_count =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(Recorder::get(head.missing_count), RankStatus::most_missing));
  for (std::size_t i = 0; i < status.missing_count; ++i)
    status.missing[i] = static_cast<std::int32_t>(Recorder::get(head.missing[i]));

  const std::uint64_t last = Recorder::get(head.recorded);
  const std::uint64_t count = std::min<std::uint64_t>({last, most, record_ring});
  for (std::uint64_t i = 0; i < count; ++i)  // a damaged `last` may be the greatest number there is
    if (const auto record = read(file, last - count + 1 + i)) state.trail.push_back(*record);
  return state;
}

Activity activity_of(std::uint64_t number) noexcept {
  return number <= static_cast<std::uint64_t>(Activity::reading) ? static_cast<Activity>(number) : Activity::running;
}

float plausible_seconds(double seconds) noexcept {
  constexpr double decades = 1e9;
  return seconds >= 0 && seconds <= decades ? static_cast<float>(seconds) : 0;
}

// Files ---------------------------------------------------------------------------------------------------------------

int open_plain(const std::filesystem::path& path, int flags) noexcept {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
  struct stat status {};
  if (descriptor < 0 || (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode))) return descriptor;
  ::close(descriptor);
  errno = EINVAL;
  return -1;
}

namespace {

bool read_at(int descriptor, std::size_t offset, void* to, std::size_t bytes) noexcept {
  auto* at = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(descriptor, at, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got, offset += static_cast<std::size_t>(got), bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

/// A record that is written to loses its index first and gets it last. So one whose index is the same after all of it
/// has been read was not written to meanwhile.
bool read_whole(int descriptor, RecordFile& file) noexcept {
  if (!read_at(descriptor, 0, &file, sizeof file)) return false;
  std::array<Record, 64> again;
  static_assert(record_ring % again.size() == 0);
  for (std::size_t first = 0; first < record_ring; first += again.size()) {
    const std::size_t offset = offsetof(RecordFile, ring) + first * sizeof(Record);
    if (!read_at(descriptor, offset, again.data(), sizeof again)) return false;
    for (std::size_t i = 0; i < again.size(); ++i)
      if (again[i].index != file.ring[first + i].index) file.ring[first + i].index = 0;
  }
  return true;
}

std::unique_ptr<RecordView> RecordView::open(const std::filesystem::path& path) {
  const int descriptor = open_plain(path, O_NOFOLLOW);
  if (descriptor < 0) return nullptr;
  std::unique_ptr<RecordView> view(new RecordView(descriptor));
  return view->refresh() ? std::move(view) : nullptr;
}

RecordView::~RecordView() { ::close(descriptor_); }

bool RecordView::refresh() noexcept {
  RecordHead head;
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || status.st_size < static_cast<off_t>(sizeof(RecordFile))) return false;
  if (!read_at(descriptor_, 0, &head, sizeof head)) return false;
  if (head.magic != record_magic || head.version != record_version || head.records != record_ring) return false;
  head_ = head;
  return true;
}

std::optional<RankState> RecordView::state(std::size_t most) {
  const auto file = std::make_unique<RecordFile>();
  if (!refresh() || !read_whole(descriptor_, *file)) return {};
  head_ = file->head;
  RankState state = state_of(*file, most);
  std::erase_if(state.trail, [](const Record& record) { return !record.has_meaning(); });
  return state;
}

bool RecordView::abandoned() const noexcept {
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) return false;
  ::flock(descriptor_, LOCK_UN);
  return true;
}

}  // namespace ronda
