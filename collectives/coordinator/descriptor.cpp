#include <ronda/collectives/coordinator/descriptor.hpp>

#include <algorithm>
#include <cstring>

namespace ronda {
namespace {

/// Takes numbers and texts one after the other. All ranks run the same program on machines of one kind.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class T>
  T take() {
    T value{};
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_ = bytes_.subspan(sizeof(T));
    return value;
  }
  std::string take_text(std::size_t length) {
    std::string text(reinterpret_cast<const char*>(bytes_.data()), length);
    bytes_ = bytes_.subspan(length);
    return text;
  }

 private:
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
  std::vector<Announcement> announcements(reader.take<std::uint32_t>());
  for (Announcement& announcement : announcements) {
    announcement.what = reader.take<Announcement::What>();
    announcement.descriptor.kind = reader.take<NamedKind>();
    announcement.descriptor.op = reader.take<ReduceOp>();
    announcement.descriptor.root = reader.take<std::int32_t>();
    announcement.name = reader.take_text(reader.take<std::uint32_t>());
    announcement.descriptor.parts.resize(reader.take<std::uint32_t>());
    for (auto& part : announcement.descriptor.parts) {
      part.dtype = reader.take<DType>();
      std::int64_t extents[Shape::capacity];
      const auto rank = reader.take<std::uint8_t>();
      for (int axis = 0; axis < rank; ++axis) extents[axis] = reader.take<std::int64_t>();
      part.shape = Shape(std::span<const std::int64_t>(extents, rank));
    }
  }
  return announcements;
}

}  // namespace ronda
