#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/reduce_op.hpp>
#include <ronda/runtime/core/tensor.hpp>

namespace ronda {

/// What is done with tensors that go by one name.
enum class NamedKind : std::uint8_t {
  allreduce,
  broadcast,
  allgather,  ///< of a tensor that is zero but for this rank's part
  barrier,    ///< has no tensors
  split,      ///< likewise: a new group of ranks is made, at the same point of all
};

/// Everything about a name that the ranks must agree on.
struct Descriptor {
  struct Part {
    Shape shape;
    DType dtype = DType::float32;
    bool operator==(const Part&) const = default;
  };

  NamedKind kind = NamedKind::allreduce;
  ReduceOp op = ReduceOp::sum;  ///< of an allreduce
  int root = 0;                 ///< of a broadcast
  std::vector<Part> parts;      ///< several: they are done together

  bool operator==(const Descriptor&) const = default;
  /// The same as what these tensors would give, without making it.
  [[nodiscard]] bool describes(NamedKind kind, ReduceOp op, int root, std::span<const Tensor> tensors) const noexcept;
  [[nodiscard]] static Descriptor of(NamedKind kind, ReduceOp op, int root, std::span<const Tensor> tensors);
  /// `sum of float32 (3, 2)`.
  [[nodiscard]] std::string text() const;
};

/// What a rank tells all others.
struct Announcement {
  enum class What : std::uint8_t {
    tensors,  ///< it has submitted these, and the others may not know the name or know another descriptor
    joined,   ///< it has no more data
    closed,   ///< it will submit nothing more
    left,     ///< it is going away; `name` says why
  };
  What what = What::tensors;
  std::string name;
  Descriptor descriptor;
};

/// A block of bytes that announcements are put into one after the other, while there is room.
class AnnouncementWriter {
 public:
  explicit AnnouncementWriter(std::size_t capacity) : bytes_(capacity) {}
  /// False, and nothing written, where it does not fit any more.
  bool add(Announcement::What what, std::string_view name, const Descriptor& descriptor);
  /// The whole block; what is not used is zero.
  [[nodiscard]] std::span<const std::byte> block() const noexcept { return bytes_; }

 private:
  void put(const void* data, std::size_t bytes) noexcept;
  template <class T>
  void put(const T& value) noexcept {
    put(&value, sizeof(T));
  }

  std::vector<std::byte> bytes_;
  std::uint32_t count_ = 0;  ///< in the block, before all else
  std::size_t end_ = sizeof(std::uint32_t);
};

/// What it takes in a block.
[[nodiscard]] std::size_t announcement_bytes(std::string_view name, const Descriptor& descriptor) noexcept;
/// Throws CommunicationError for what no writer has written.
[[nodiscard]] std::vector<Announcement> read_announcements(std::span<const std::byte> block);

}  // namespace ronda
