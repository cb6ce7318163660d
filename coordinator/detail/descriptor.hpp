#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/reduce_op.hpp>
#include <ronda/coordinator/detail/rank_set.hpp>
#include <ronda/core/tensor.hpp>

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
  std::uint32_t failed = 0;     ///< calls with the name that failed on this rank: see SubmissionDesk::note_refused

  bool operator==(const Descriptor&) const = default;
  /// The same as what these tensors would give, without making it.
  [[nodiscard]] bool describes(NamedKind kind, ReduceOp op, int root, std::span<const Tensor> tensors) const noexcept;
  [[nodiscard]] static Descriptor of(NamedKind kind, ReduceOp op, int root, std::span<const Tensor> tensors);
  /// `sum of float32 (3, 2)`, and the failed calls before it.
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] std::string text_of_wish() const;
};

/// What ranks tell all others.
struct Announcement {
  enum class What : std::uint8_t {
    tensors,  ///< they have submitted these, and the others may not know the name or know another descriptor
    joined,   ///< they have no more data
    closed,   ///< they will submit nothing more
    left,     ///< they are going away; `name` says why
    has,      ///< they have in flight what all ranks know by a number, of which `name` are the bytes
  };
  What what = What::tensors;
  std::string name;
  Descriptor descriptor;
  RankSet ranks;  ///< who says so

  [[nodiscard]] bool says_the_same_as(const Announcement& other) const noexcept {
    return what == other.what && name == other.name && descriptor == other.descriptor;
  }
};

/// A block of bytes with announcements one after the other, as many as there is room for.
class AnnouncementBlock {
 public:
  /// Begins anew in `bytes`, which outlive this object.
  explicit AnnouncementBlock(std::span<std::byte> bytes);
  /// False, and nothing written but that something was left out, where it does not fit any more.
  bool add(const Announcement& announcement);
  /// More was to be said than is in it.
  void leave_out() noexcept;

 private:
  void write_head() noexcept;

  std::span<std::byte> bytes_;
  std::uint32_t count_ = 0;
  bool left_out_ = false;
  std::size_t end_ = 2 * sizeof(std::uint32_t);
};

/// What is in a block.
struct Announcements {
  std::vector<Announcement> all;
  bool left_out = false;  ///< more than that was said, and has to be said again

  /// Throws CommunicationError where this is no such block.
  [[nodiscard]] static Announcements read(std::span<const std::byte> block);
  [[nodiscard]] bool say(Announcement::What what, int rank) const noexcept;
};

/// What an announcement by one rank takes in a block.
[[nodiscard]] std::size_t announcement_bytes(std::string_view name, const Descriptor& descriptor) noexcept;
/// Adds to the block `mine` what `other` has; what both say becomes one announcement by the ranks of both.
void merge_announcements(std::span<std::byte> mine, std::span<const std::byte> other);

}  // namespace ronda
