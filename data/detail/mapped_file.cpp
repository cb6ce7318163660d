#include <ronda/core/data_files.hpp>
#include <ronda/core/error.hpp>
#include <ronda/data/detail/mapped_file.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

namespace ronda {
namespace {

class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path) : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (number_ < 0) throw InputError("cannot open " + path.string() + ": " + std::strerror(errno));
  }
  ~Descriptor() { ::close(number_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int number() const noexcept { return number_; }

 private:
  int number_;
};

}  // namespace

Buffer map_file(const std::filesystem::path& path) {
  const Descriptor file(path);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0)
    throw InputError("cannot read " + path.string() + ": " + std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw InputError(path.string() + " is no file");
  if (status.st_size == 0) throw InputError(path.string() + " is empty");
  const auto bytes = static_cast<std::size_t>(status.st_size);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.number(), 0);
  if (memory == MAP_FAILED) throw InputError("cannot map " + path.string() + ": " + std::strerror(errno));
  note_data_file(path);
  std::shared_ptr<const void> keeper(memory, [bytes](void* mapping) { ::munmap(mapping, bytes); });
  return {static_cast<std::byte*>(memory), bytes, Device(), std::move(keeper)};
}

void read_ahead(std::span<const std::byte> part) noexcept {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t before = reinterpret_cast<std::uintptr_t>(part.data()) % page;  // in the first page
  ::madvise(const_cast<std::byte*>(part.data() - before), before + part.size(), MADV_WILLNEED);
}

}  // namespace ronda
