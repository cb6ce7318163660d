#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <ronda/collectives/members/assembly.hpp>

namespace ronda {

/// Memory that all ranks of a node see: a segment for each, in one or two mappings each, or one for all of them.
/// Unmapping is each rank's own affair, so the owner of a buffer can let go of it without waiting for anybody.
///
/// It is a file of the memory file system that loses its name as soon as all ranks have opened it, and takes memory
/// only then, so none is left behind, however the ranks end. Every page is taken from the system before anybody touches
/// it: a file system that is too small is found out here, and never by a SIGBUS later.
///
/// A rank has touched its own segment, or the one for all, and of the others' nothing: who is going to use a part of
/// them touches that (see touch_pages).
class SharedMemory {
 public:
  struct Wish {
    std::size_t segment_bytes = 0;  ///< the same on all ranks
    std::size_t keep_free = 0;      ///< of the file system, for others
    std::size_t limit = 0;          ///< takes the file system for one with at most this room
    bool one = false;               ///< one segment, every rank's
  };
  /// What came of it: memory, or why there is none; alike on all ranks of the node.
  struct Outcome {
    std::shared_ptr<SharedMemory> memory;
    std::string refusal;
  };
  /// Zeroed. Collective over `node`.
  [[nodiscard]] static Outcome create(Assembly& node, const Wish& wish);

  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;

  [[nodiscard]] std::span<std::byte> segment(int rank_on_node) const noexcept {
    return {base_ + static_cast<std::size_t>(rank_on_node) * stride_, segment_bytes_};
  }

 private:
  SharedMemory(std::size_t segment_bytes, std::size_t file_stride, int segments);
  std::string map(int file);
  [[nodiscard]] bool is_small() const noexcept { return file_stride_ <= std::size_t{1} << 20; }

  std::byte* reserved_ = nullptr;  ///< addresses, with the segments among them
  std::size_t addresses_ = 0;
  std::byte* base_ = nullptr;
  std::size_t segment_bytes_, file_stride_, segments_;
  std::size_t stride_;  ///< of the segments' addresses, at least `file_stride_`; 0 where one is every rank's
};

}  // namespace ronda
