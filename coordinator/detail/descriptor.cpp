#include <ronda/coordinator/detail/descriptor.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace ronda {
namespace {

/// Takes numbers and texts one after the other. All ranks run the same program on machines of one kind.
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
    if (number > static_cast<std::uint8_t>(last)) refuse();
    return static_cast<T>(number);
  }
  std::string take_text(std::size_t length) {
    const auto bytes = next(length);
    return {reinterpret_cast<const char*>(bytes.data()), length};
  }
  /// How many of something follow that takes at least so many bytes each.
  std::size_t take_count(std::size_t least_bytes) {
    const auto count = take<std::uint32_t>();
    if (count > bytes_.size() / least_bytes) refuse();
    return count;
  }
  [[noreturn]] static void refuse() {
    throw CommunicationError("what a rank announced to the other coordinators is damaged");
  }

 private:
  std::span<const std::byte> next(std::size_t length) {
    if (length > bytes_.size()) refuse();
    const auto taken = bytes_.first(length);
    bytes_ = bytes_.subspan(length);
    return taken;
  }
  std::span<const std::byte> bytes_;
};

constexpr std::size_t part_bytes = 2, range_bytes = 2 * sizeof(std::int32_t);
constexpr std::size_t fixed_bytes = 3 + 5 * sizeof(std::uint32_t);

Announcement read_one(Reader& reader) {
  Announcement announcement;
  Descriptor& descriptor = announcement.descriptor;
  announcement.what = reader.take_up_to(Announcement::What::has);
  descriptor.kind = reader.take_up_to(NamedKind::split);
  descriptor.op = reader.take_up_to(last_reduce_op);
  descriptor.root = reader.take<std::int32_t>();
  descriptor.failed = reader.take<std::uint32_t>();
  announcement.name = reader.take_text(reader.take_count(1));
  descriptor.parts.resize(reader.take_count(part_bytes));
  for (auto& part : descriptor.parts) {
    part.dtype = reader.take_up_to(DType::int64);
    std::int64_t extents[Shape::capacity];
    const auto axes = reader.take<std::uint8_t>();
    if (axes > Shape::capacity) Reader::refuse();
    for (int axis = 0; axis < axes; ++axis) {
      extents[axis] = reader.take<std::int64_t>();
      if (extents[axis] < 0) Reader::refuse();
    }
    part.shape = Shape(std::span<const std::int64_t>(extents, axes));
  }
  for (std::size_t left = reader.take_count(range_bytes); left > 0; --left) {
    const auto first = reader.take<std::int32_t>(), last = reader.take<std::int32_t>();
    if (first < 0 || last < first) Reader::refuse();
    announcement.ranks.add({first, last});
  }
  return announcement;
}

}  // namespace

bool Descriptor::describes(NamedKind other_kind, ReduceOp other_op, int other_root,
                           std::span<const Tensor> tensors) const noexcept {
  return kind == other_kind && op == other_op && root == other_root &&
         std::equal(parts.begin(), parts.end(), tensors.begin(), tensors.end(), [](const Part& part, const Tensor& t) {
           return part.dtype == t.dtype() && part.shape == t.shape();
         });
}

Descriptor Descriptor::of(NamedKind kind, ReduceOp op, int root, std::span<const Tensor> tensors) {
  Descriptor descriptor{kind, op, root, {}, 0};
  for (const Tensor& tensor : tensors) descriptor.parts.push_back({tensor.shape(), tensor.dtype()});
  return descriptor;
}

std::string Descriptor::text() const {
  return text_of_wish() + (failed == 0 ? "" : ", after " + counted(failed, "call") + " that failed on that rank alone");
}

std::string Descriptor::text_of_wish() const {
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

namespace {

std::size_t bytes_of(std::string_view name, const Descriptor& descriptor, std::size_t ranges) noexcept {
  std::size_t bytes = fixed_bytes + name.size() + ranges * range_bytes;
  for (const auto& part : descriptor.parts)
    bytes += part_bytes + static_cast<std::size_t>(part.shape.rank()) * sizeof(std::int64_t);
  return bytes;
}

}  // namespace

std::size_t announcement_bytes(std::string_view name, const Descriptor& descriptor) noexcept {
  return bytes_of(name, descriptor, 1);
}

AnnouncementBlock::AnnouncementBlock(std::span<std::byte> bytes) : bytes_(bytes) { write_head(); }

bool AnnouncementBlock::add(const Announcement& announcement) {
  const auto& [what, name, descriptor, ranks] = announcement;
  const bool fits = end_ + bytes_of(name, descriptor, ranks.ranges().size()) <= bytes_.size();
  const auto put_bytes = [&](const void* data, std::size_t bytes) {
    if (bytes > 0) std::memcpy(bytes_.data() + end_, data, bytes);
    end_ += bytes;
  };
  const auto put = [&](const auto& value) { put_bytes(&value, sizeof value); };
  if (fits) {
    put(what);
    put(descriptor.kind);
    put(descriptor.op);
    put(static_cast<std::int32_t>(descriptor.root));
    put(descriptor.failed);
    put(static_cast<std::uint32_t>(name.size()));
    put_bytes(name.data(), name.size());
    put(static_cast<std::uint32_t>(descriptor.parts.size()));
    for (const auto& part : descriptor.parts) {
      put(part.dtype);
      put(static_cast<std::uint8_t>(part.shape.rank()));
      for (const std::int64_t extent : part.shape) put(extent);
    }
    put(static_cast<std::uint32_t>(ranks.ranges().size()));
    for (const auto& range : ranks.ranges()) {
      put(static_cast<std::int32_t>(range.first));
      put(static_cast<std::int32_t>(range.last));
    }
    ++count_;
  }
  left_out_ = left_out_ || !fits;
  write_head();
  return fits;
}

void AnnouncementBlock::leave_out() noexcept {
  left_out_ = true;
  write_head();
}

void AnnouncementBlock::write_head() noexcept {
  const std::uint32_t head[] = {count_, left_out_ ? 1U : 0U};
  std::memcpy(bytes_.data(), head, sizeof head);
}

Announcements Announcements::read(std::span<const std::byte> block) {
  Reader reader(block);
  Announcements announcements;
  announcements.all.resize(reader.take_count(fixed_bytes));
  announcements.left_out = reader.take<std::uint32_t>() != 0;
  for (Announcement& announcement : announcements.all) announcement = read_one(reader);
  return announcements;
}

bool Announcements::say(Announcement::What what, int rank) const noexcept {
  return std::ranges::any_of(all, [&](const auto& one) { return one.what == what && one.ranks.contains(rank); });
}

void merge_announcements(std::span<std::byte> mine, std::span<const std::byte> other) {
  Announcements merged = Announcements::read(mine), others = Announcements::read(other);
  merged.all.reserve(merged.all.size() + others.all.size());  // so that the names stay where they are
  std::unordered_multimap<std::string_view, Announcement*> by_name;
  for (Announcement& announcement : merged.all) by_name.emplace(announcement.name, &announcement);
  for (Announcement& announcement : others.all) {
    const auto [begin, end] = by_name.equal_range(announcement.name);
    const auto same =
        std::find_if(begin, end, [&](const auto& known) { return known.second->says_the_same_as(announcement); });
    if (same != end)
      same->second->ranks.add(announcement.ranks);
    else
      merged.all.push_back(std::move(announcement));
  }
  AnnouncementBlock block(mine);
  bool all_fit = !merged.left_out && !others.left_out;
  for (const Announcement& announcement : merged.all) all_fit &= block.add(announcement);
  if (!all_fit) block.leave_out();
}

}  // namespace ronda
