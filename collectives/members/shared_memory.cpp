#include <ronda/collectives/members/shared_memory.hpp>
#include <ronda/collectives/host/node/touch_pages.hpp>
#include <ronda/core/text.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/parallel.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

namespace ronda {
namespace {

constexpr const char* shm_folder = "/dev/shm";
/// Addresses that differ by a multiple of it have the same bits 12 to 27.
constexpr std::size_t hashed = std::size_t{1} << 28;

std::string reason(const char* what) { return std::string(what) + " " + shm_folder + ": " + std::strerror(errno); }

/// An open file of shared memory.
class File {
 public:
  explicit File(int descriptor = -1) : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] bool open() const noexcept { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

/// Why there is no room for `total` bytes; empty where there is.
std::string room_refusal(std::size_t total, const SharedMemory::Wish& wish) {
  struct statvfs system {};
  if (::statvfs(shm_folder, &system) != 0) return reason("cannot look at");
  const std::size_t free = std::min<std::size_t>(std::size_t{system.f_bavail} * system.f_frsize, wish.limit);
  if (free >= wish.keep_free && free - wish.keep_free >= total) return {};
  return std::string(shm_folder) + " has " + human_bytes(free) + " free, " + human_bytes(total) +
         " are needed besides " + human_bytes(wish.keep_free) +
         " that MPI itself may need (docker run --shm-size gives a container more)";
}

/// The node's first rank makes the file: its name, or the refusal, goes to the others.
File make_file(std::size_t total, const SharedMemory::Wish& wish, std::string& name, std::string& refusal) {
  refusal = room_refusal(total, wish);
  if (!refusal.empty()) return File();
  std::random_device random;
  name = "/ronda." + std::to_string(::getpid()) + "." + std::to_string(random());
  File file(::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
  if (!file.open() || ::ftruncate(file.descriptor(), static_cast<off_t>(total)) != 0)
    refusal = reason("cannot make a file in");
  return file;
}

/// Takes this rank's part of the pages, near the processor that it runs on.
std::string take_pages(const File& file, Range bytes) {
  int error = 0;
  if (bytes.size() == 0) return {};
  do error = ::posix_fallocate(file.descriptor(), static_cast<off_t>(bytes.begin), static_cast<off_t>(bytes.size()));
  while (error == EINTR);
  errno = error;
  return error == 0 ? std::string() : reason("cannot take memory from");
}

}  // namespace

SharedMemory::Outcome SharedMemory::create(Assembly& node, const Wish& wish) {
  const int ranks = node.size(), rank = node.rank();
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t pages = (std::max<std::size_t>(wish.segment_bytes, 1) + page - 1) / page, stride = pages * page;
  const int segments = wish.one ? 1 : ranks;
  const std::size_t total = stride * static_cast<std::size_t>(segments);

  std::string name, refusal;
  File file;
  if (rank == 0) file = make_file(total, wish, name, refusal);
  const std::string made = node.gather_texts(refusal.empty() ? name : std::string())[0];
  if (!made.empty() && rank != 0) {
    file = File(::shm_open(made.c_str(), O_RDWR, 0));
    if (!file.open()) refusal = reason("cannot open the first rank's file in");
  }
  // Nobody needs the name any more. It goes before memory is taken: what is left without a name lasts no longer than
  // its ranks.
  const bool all_have_it = node.all(refusal.empty() && file.open());
  if (rank == 0 && !name.empty()) ::shm_unlink(name.c_str());

  std::shared_ptr<SharedMemory> memory;
  const Range mine = part_of(total / page, static_cast<std::size_t>(rank), static_cast<std::size_t>(ranks));
  if (all_have_it) refusal = take_pages(file, {mine.begin * page, mine.end * page});
  if (all_have_it && refusal.empty()) {
    memory.reset(new SharedMemory(wish.segment_bytes, stride, segments));
    refusal = memory->map(file.descriptor());
  }
  for (const std::string& text : node.gather_texts(refusal))
    if (!text.empty()) return {nullptr, text};
  touch_pages(memory->segment(rank));
  return {std::move(memory), {}};
}

/// Ranks sum the same place of all segments at the same time. First-level caches of AMD's Zen guess where a line is
/// from a hash of its address bits 12 to 27 (Lipp et al., "Take a way", AsiaCCS 2020); lines with one hash push each
/// other out, and such sums take seven times as long. Segments that lie some pages more than a multiple of 256 MiB
/// apart differ in it; so do up to 32 small ones that have a power of two of addresses each, from a multiple of what
/// all have. This costs addresses only, no memory.
SharedMemory::SharedMemory(std::size_t segment_bytes, std::size_t file_stride, int segments)
    : segment_bytes_(segment_bytes), file_stride_(file_stride), segments_(static_cast<std::size_t>(segments)) {
  stride_ = is_small() ? std::bit_ceil(file_stride) : (file_stride + hashed - 1) / hashed * hashed + 17 * 4096;
  if (segments == 1) stride_ = 0;
}

/// Empty, or why it could not be done.
std::string SharedMemory::map(int file) {
  const std::size_t all = stride_ > 0 ? stride_ * segments_ : file_stride_,
                    unit = stride_ > 0 && is_small() ? std::min(std::bit_ceil(all), hashed) : 1;
  addresses_ = all + unit - 1;
  void* const found = ::mmap(nullptr, addresses_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return reason("no addresses to map");
  reserved_ = static_cast<std::byte*>(found);
  base_ = reserved_ + (unit - reinterpret_cast<std::uintptr_t>(found) % unit) % unit;
  for (std::size_t i = 0; i < segments_; ++i)
    if (::mmap(base_ + i * stride_, file_stride_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
               static_cast<off_t>(i * file_stride_)) == MAP_FAILED)
      return reason("cannot map");
  return {};
}

SharedMemory::~SharedMemory() {
  if (reserved_ != nullptr) ::munmap(reserved_, addresses_);
}

}  // namespace ronda
