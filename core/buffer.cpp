#include <ronda/core/buffer.hpp>
#include <ronda/core/error.hpp>

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace ronda {

Buffer Buffer::host(std::size_t bytes) {
  constexpr std::size_t huge_page = std::size_t{2} << 20;
  const std::size_t unit = bytes >= huge_page ? huge_page : alignment;
  const std::size_t rounded = (bytes + unit - 1) / unit * unit;
  if (rounded < bytes) throw ResourceError("cannot allocate " + std::to_string(bytes) + " bytes: the size overflows");
  if (rounded == 0) return {};
  void* memory = std::aligned_alloc(unit, rounded);
  if (memory == nullptr) throw ResourceError("cannot allocate " + std::to_string(bytes) + " bytes of memory");
  if (unit == huge_page) madvise(memory, rounded, MADV_HUGEPAGE);  // a hint; without it everything works, slower
  std::memset(memory, 0, rounded);
  return {static_cast<std::byte*>(memory), bytes, Device{},
          std::shared_ptr<const void>(memory, [](const void* p) { std::free(const_cast<void*>(p)); })};
}

}  // namespace ronda
