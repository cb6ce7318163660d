#include <ronda/collectives/coordinator/descriptor.hpp>
#include <ronda/runtime/core/error.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace ronda {
namespace {

/// Takes numbers and texts one after the other. All ranks run the same program on machines of one kind; where they do
/// not, what comes may be anything.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class T>
  T take() {
    T value{};
    std::memcpy(&value, next(sizeof(T)).data(), sizeof(T));
    return value;
  }
  /// A number from 0 to `last`.
  template <class T>
  T take_up_to(T last) {
    const auto number = take<std::uint8_t>();
    require(number <= static_cast<std::uint8_t>(last));
    return static_cast<T>(number);
  }
  /// How many things follow, of at least `bytes_each`.
  std::size_t take_count(std::size_t bytes_each) {
    const std::size_t count = take<std::uint32_t>();
    require(count <= bytes_.size() / bytes_each);
    return count;
  }
  std::string take_text() {
    const auto text = next(take_count(1));
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }
  static void require(bool sensible) {
    if (!sensible)
      throw CommunicationError("what a rank announces makes no sense; do all ranks run the same version of Ronda?");
  }

 private:
  std::span<const std::byte> next(std::size_t bytes) {
    require(bytes <= bytes_.size());
    const auto taken = bytes_.first(bytes);
    bytes_ = bytes_.subspan(bytes);
    return taken;
  }

  std::span<const std::byte> bytes_;
};

constexpr std::size_t fixed_bytes = 3 + sizeof(std::uint32_t) + sizeof(std::int32_t) + sizeof(std::uint32_t);

}  // namespace

bool Descriptor::describes(NamedKind other_kind, ReduceOp other_op, int other_root,
                           std::span<const Tensor> tensors) const noexcept {
  return kind == other_kind && op == other_op && root == other_root &&
         std::equal(parts.begin(), parts.end(), tensors.begin(), tensors.end(), [](const Part& part, const Tensor& t) {
           return part.dtype == t.dtype() && part.shape == t.shape();
         });
}

Descriptor Descriptor::of(NamedKind kind, ReduceOp op, int root, std::span<const Tensor> tensors) {
  Descriptor descriptor{kind, op, root, {}};
  for (const Tensor& tensor : tensors) descriptor.parts.push_back({tensor.shape(), tensor.dtype()});
  return descriptor;
}

std::string Descriptor::text() const {
  std::string text;
  switch (kind) {
    case NamedKind::barrier: return "a barrier";
    case NamedKind::split: return "a split into groups";
    case NamedKind::allreduce: text = std::string(name_of(op)) + " of "; break;
    case NamedKind::allgather: text = "allgather of "; break;
    case NamedKind::broadcast: text = "broadcast from rank " + std::to_string(root) + " of "; break;
  }
  constexpr std::size_t shown = 4;
  for (std::size_t i = 0; i < parts.size() && i < shown; ++i)
    text += (i == 0 ? "" : ", ") + std::string(name_of(parts[i].dtype)) + " " + parts[i].shape.text();
  if (parts.size() > shown) text += ", … (" + std::to_string(parts.size()) + " tensors)";
  return text;
}

std::size_t announcement_bytes(std::string_view name, const Descriptor& descriptor) noexcept {
  std::size_t bytes = fixed_bytes + name.size();
  for (const auto& part : descriptor.parts)
    bytes += 2 + static_cast<std::size_t>(part.shape.rank()) * sizeof(std::int64_t);
  return bytes;
}

void AnnouncementWriter::put(const void* data, std::size_t bytes) noexcept {
  if (bytes > 0) std::memcpy(bytes_.data() + end_, data, bytes);
  end_ += bytes;
}

bool AnnouncementWriter::add(Announcement::What what, std::string_view name, const Descriptor& descriptor) {
  if (end_ + announcement_bytes(name, descriptor) > bytes_.size()) return false;
  put(what);
  put(descriptor.kind);
  put(descriptor.op);
  put(static_cast<std::int32_t>(descriptor.root));
  put(static_cast<std::uint32_t>(name.size()));
  put(name.data(), name.size());
  put(static_cast<std::uint32_t>(descriptor.parts.size()));
  for (const auto& part : descriptor.parts) {
    put(part.dtype);
    put(static_cast<std::uint8_t>(part.shape.rank()));
    for (const std::int64_t extent : part.shape) put(extent);
  }
  ++count_;
  std::memcpy(bytes_.data(), &count_, sizeof(count_));
  return true;
}

std::vector<Announcement> read_announcements(std::span<const std::byte> block) {
  Reader reader(block);
  std::vector<Announcement> announcements(reader.take_count(fixed_bytes));
  for (Announcement& announcement : announcements) {
    announcement.what = reader.take_up_to(Announcement::What::left);
    announcement.descriptor.kind = reader.take_up_to(NamedKind::split);
    announcement.descriptor.op = reader.take_up_to(last_reduce_op);
    announcement.descriptor.root = reader.take<std::int32_t>();
    announcement.name = reader.take_text();
    announcement.descriptor.parts.resize(reader.take_count(2));
    for (auto& part : announcement.descriptor.parts) {
      part.dtype = reader.take_up_to(DType::int64);
      std::array<std::int64_t, Shape::capacity> extents{};
      const std::size_t rank = reader.take<std::uint8_t>();
      Reader::require(rank <= extents.size());
      for (std::size_t axis = 0; axis < rank; ++axis) {
        extents[axis] = reader.take<std::int64_t>();
        Reader::require(extents[axis] >= 0);
      }
      part.shape = Shape(std::span(extents).first(rank));
    }
  }
  return announcements;
}

}  // namespace ronda
