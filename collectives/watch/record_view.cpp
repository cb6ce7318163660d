#include <ronda/collectives/watch/record_view.hpp>
#include <ronda/collectives/watch/recorder.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>

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
  return first_time + static_cast<std::uint64_t>(static_cast<std::int64_t>(since));
}

RankState state_of(const RecordFile& file, std::size_t most) {
  const RecordHead& head = file.head;
  RankState state;
  RankStatus& status = state.status;
  status.rank = std::atomic_ref(const_cast<std::int32_t&>(head.rank)).load(std::memory_order_relaxed);
  status.still = Recorder::get(head.still) != 0;
  status.inside_mpi = Recorder::get(head.inside_mpi) != 0;
  status.alarmed = Recorder::get(head.alarmed) != 0;
  status.activity = static_cast<Activity>(Recorder::get(head.activity));
  status.step = Recorder::get(head.step);
  status.moves = Recorder::get(head.moves);
  status.activity_limit = static_cast<float>(Recorder::get(head.activity_limit)) * 1e-3F;
  const std::uint64_t since = nanoseconds_of(Recorder::get(head.activity_since), head);
  status.activity_seconds =
      static_cast<float>(static_cast<std::int64_t>(Recorder::get(head.last.nanoseconds) - since)) * 1e-9F;
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

std::unique_ptr<RecordView> RecordView::open(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return nullptr;
  struct stat status {};
  void* memory = MAP_FAILED;
  if (::fstat(descriptor, &status) == 0 && static_cast<std::size_t>(status.st_size) >= sizeof(RecordFile))
    memory = ::mmap(nullptr, sizeof(RecordFile), PROT_READ, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {
    ::close(descriptor);
    return nullptr;
  }
  std::unique_ptr<RecordView> view(new RecordView(descriptor, static_cast<const RecordFile*>(memory)));
  const RecordHead& head = view->file().head;
  if (head.magic != record_magic || head.version != record_version || head.records != record_ring) return nullptr;
  return view;
}

RecordView::~RecordView() {
  ::munmap(const_cast<RecordFile*>(file_), sizeof(RecordFile));
  ::close(descriptor_);
}

bool RecordView::abandoned() const noexcept {
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) return false;
  ::flock(descriptor_, LOCK_UN);
  return true;
}

}  // namespace ronda
