#include <ronda/core/buffer.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/tensor.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace ronda {

Shape::Shape(std::span<const std::int64_t> extents) : rank_(static_cast<int>(extents.size())) {
  if (rank_ > capacity) throw LogicError("a shape has at most 6 axes, " + std::to_string(rank_) + " were given");
  for (int axis = 0; axis < rank_; ++axis) {
    const std::int64_t extent = extents[static_cast<std::size_t>(axis)];
    if (extent < 0) throw LogicError("a shape's extent cannot be negative: " + std::to_string(extent));
    (*this)[axis] = extent;
  }
}

std::int64_t Shape::count() const noexcept {
  std::int64_t product = 1;
  for (std::int64_t extent : *this) product *= extent;
  return product;
}

Shape Shape::without_batch() const {
  if (rank_ == 0) throw LogicError("a scalar has no batch axis");
  return Shape(std::span(begin() + 1, end()));
}

std::string Shape::text() const {
  std::string text = "(";
  for (int axis = 0; axis < rank_; ++axis) text += (axis ? ", " : "") + std::to_string((*this)[axis]);
  return text + ")";
}

namespace {

std::int64_t block_product(std::span<const Layout::Block> blocks, int axis) {
  std::int64_t product = 1;
  for (const auto& block : blocks)
    if (block.axis == axis) product *= block.size;
  return product;
}

InputError no_tag(std::string_view tag) {
  return InputError("'" + std::string(tag) + "' is no memory layout: expected 'plain' or letters such as 'adbc16d'");
}

}  // namespace

Layout::Layout(std::span<const int> order, std::span<const Block> blocks)
    : rank_(static_cast<int>(order.size())), block_count_(static_cast<int>(blocks.size())) {
  if (rank_ > Shape::capacity || block_count_ > max_blocks) throw LogicError("a layout with too many axes or blocks");
  std::copy(order.begin(), order.end(), order_.begin());
  std::copy(blocks.begin(), blocks.end(), blocks_.begin());
  std::vector<int> sorted(order.begin(), order.end());
  std::sort(sorted.begin(), sorted.end());
  for (int axis = 0; axis < rank_; ++axis)
    if (sorted[static_cast<std::size_t>(axis)] != axis) throw LogicError("a layout's order is not a permutation");
  if (block_count_ == 0 && std::is_sorted(order.begin(), order.end())) *this = Layout();  // one value for row-major
}

Layout Layout::parse(std::string_view tag) {
  if (tag == "plain") return {};
  std::vector<int> order;
  std::vector<Block> blocks;
  std::size_t at = 0;
  while (at < tag.size() && tag[at] >= 'a' && tag[at] <= 'z') order.push_back(tag[at++] - 'a');
  while (at < tag.size()) {
    std::int64_t size = 0;
    while (at < tag.size() && tag[at] >= '0' && tag[at] <= '9' && size < 1'000'000)
      size = size * 10 + (tag[at++] - '0');
    if (size == 0 || at == tag.size() || tag[at] < 'a' || tag[at] - 'a' >= static_cast<int>(order.size()))
      throw no_tag(tag);
    blocks.push_back({tag[at++] - 'a', size});
  }
  if (order.empty() || order.size() > Shape::capacity || blocks.size() > max_blocks) throw no_tag(tag);
  try {
    return {order, blocks};
  } catch (const LogicError&) {
    throw no_tag(tag);
  }
}

std::string Layout::tag() const {
  if (is_plain()) return "plain";
  std::string text;
  for (int i = 0; i < rank_; ++i) text += static_cast<char>('a' + order_[static_cast<std::size_t>(i)]);
  for (const auto& block : blocks()) text += std::to_string(block.size) + static_cast<char>('a' + block.axis);
  return text;
}

Shape Layout::padded(const Shape& shape) const {
  Shape padded = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const std::int64_t block = block_product(blocks(), axis);
    padded[axis] = (shape[axis] + block - 1) / block * block;
  }
  return padded;
}

std::array<std::int64_t, Shape::capacity> Layout::outer_strides(const Shape& shape) const {
  if (!is_plain() && rank_ != shape.rank()) throw LogicError("layout " + tag() + " does not fit shape " + shape.text());
  std::array<int, Shape::capacity> order = order_;
  if (is_plain()) std::iota(order.begin(), order.end(), 0);
  std::int64_t stride = 1;
  for (const auto& block : blocks()) stride *= block.size;
  const Shape extents = padded(shape);
  std::array<std::int64_t, Shape::capacity> strides{};
  for (int i = shape.rank() - 1; i >= 0; --i) {
    const int axis = order[static_cast<std::size_t>(i)];
    strides[static_cast<std::size_t>(axis)] = stride;
    stride *= extents[axis] / block_product(blocks(), axis);
  }
  return strides;
}

std::optional<Layout> Layout::without_outermost() const {
  if (is_plain()) return Layout();
  if (order_[0] != 0 || block_product(blocks(), 0) != 1) return std::nullopt;
  std::vector<int> order;
  for (int i = 1; i < rank_; ++i) order.push_back(order_[static_cast<std::size_t>(i)] - 1);
  std::vector<Block> blocks;
  for (const auto& block : this->blocks())
    if (block.axis != 0) blocks.push_back({block.axis - 1, block.size});
  return Layout(order, blocks);
}

Layout Layout::with_outermost() const {
  if (is_plain()) return {};
  std::vector<int> order{0};
  for (int i = 0; i < rank_; ++i) order.push_back(order_[static_cast<std::size_t>(i)] + 1);
  std::vector<Block> blocks;
  for (const auto& block : this->blocks()) blocks.push_back({block.axis + 1, block.size});
  return Layout(order, blocks);
}

Layout Layout::without_step(int axis) const {
  if (is_plain()) return {};
  if (block_product(blocks(), axis) != 1) throw LogicError("layout " + tag() + " has blocks of an axis of one step");
  const auto moved = [axis](int other) { return other > axis ? other - 1 : other; };
  std::vector<int> order;
  for (int i = 0; i < rank_; ++i)
    if (const int other = order_[static_cast<std::size_t>(i)]; other != axis) order.push_back(moved(other));
  std::vector<Block> blocks;
  for (const auto& block : this->blocks())
    if (block.axis != axis) blocks.push_back({moved(block.axis), block.size});
  return Layout(order, blocks);
}

Layout Layout::with_step(int axis) const {
  if (is_plain()) return {};
  const auto moved = [axis](int other) { return other >= axis ? other + 1 : other; };
  std::vector<int> order;
  for (int i = 0; i < rank_; ++i) {
    const int other = order_[static_cast<std::size_t>(i)];
    if (other == axis) order.push_back(axis);
    order.push_back(moved(other));
  }
  std::vector<Block> blocks;
  for (const auto& block : this->blocks()) blocks.push_back({moved(block.axis), block.size});
  return Layout(order, blocks);
}

std::vector<std::int64_t> Layout::offsets(const Shape& shape, int axis) const {
  const std::int64_t outer_stride = outer_strides(shape)[static_cast<std::size_t>(axis)];
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(shape[axis]));
  for (std::int64_t index = 0; index < shape[axis]; ++index) {
    std::int64_t rest = index, inner_stride = 1, offset = 0;
    for (int b = block_count_ - 1; b >= 0; --b) {  // the innermost block holds the lowest digits of the index
      const Block& block = blocks_[static_cast<std::size_t>(b)];
      if (block.axis == axis) {
        offset += rest % block.size * inner_stride;
        rest /= block.size;
      }
      inner_stride *= block.size;
    }
    offsets[static_cast<std::size_t>(index)] = offset + rest * outer_stride;
  }
  return offsets;
}

namespace {

/// Walks all logical indices of axes [axis, rank) and copies element by element; `from` and `to` are running offsets.
template <class T>
class Reorder {
 public:
  Reorder(const Tensor& from, const Tensor& to)
      : from_(from.pointer<T>()), to_(to.pointer<T>()), rank_(from.shape().rank()) {
    for (int axis = 0; axis < rank_; ++axis) {
      from_offsets_.push_back(from.desc().layout.offsets(from.shape(), axis));
      to_offsets_.push_back(to.desc().layout.offsets(to.shape(), axis));
    }
  }
  void run(int axis = 0, std::int64_t from = 0, std::int64_t to = 0) const {
    if (axis == rank_) {
      to_[to] = from_[from];
      return;
    }
    const auto& source = from_offsets_[static_cast<std::size_t>(axis)];
    const auto& target = to_offsets_[static_cast<std::size_t>(axis)];
    for (std::size_t i = 0; i < source.size(); ++i) run(axis + 1, from + source[i], to + target[i]);
  }

 private:
  const T* from_;
  T* to_;
  int rank_;
  std::vector<std::vector<std::int64_t>> from_offsets_, to_offsets_;
};

/// A tensor's bytes where the host can read them: its own, or a copy of a device's.
class OnHost {
 public:
  explicit OnHost(const Tensor& tensor) : original_(tensor), here_(tensor) {
    if (!elsewhere()) return;
    memory_ = Buffer::host(tensor.desc().bytes());
    here_ = Tensor(tensor.desc(), memory_.data());
    copy_now(tensor.data(), here_.data(), tensor.desc().bytes(), tensor.device());
  }
  [[nodiscard]] const Tensor& tensor() const noexcept { return here_; }
  void write_back() const {
    if (elsewhere()) copy_now(here_.data(), original_.data(), original_.desc().bytes(), original_.device());
  }

 private:
  [[nodiscard]] bool elsewhere() const noexcept {
    return original_.device().kind != DeviceKind::cpu && original_.desc().bytes() > 0;
  }
  Tensor original_, here_;
  Buffer memory_;
};

}  // namespace

std::string TensorDesc::text() const { return std::string(name_of(dtype)) + " " + shape.text() + " " + layout.tag(); }

bool same_bytes(const TensorDesc& a, const TensorDesc& b) {
  if (a == b) return true;
  if (a.shape != b.shape || a.dtype != b.dtype || a.padded_count() != b.padded_count()) return false;
  for (int axis = 0; axis < a.shape.rank(); ++axis)
    if (a.shape[axis] > 1 && a.layout.offsets(a.shape, axis) != b.layout.offsets(b.shape, axis)) return false;
  return true;
}

void Tensor::check_type(DType wanted) const {
  if (wanted != desc_.dtype)
    throw LogicError("a tensor of " + std::string(name_of(desc_.dtype)) + " was read as " +
                     std::string(name_of(wanted)));
}

void reorder(const Tensor& from, const Tensor& to) {
  if (from.shape() != to.shape() || from.dtype() != to.dtype())
    throw LogicError("cannot copy " + from.desc().text() + " to " + to.desc().text());
  if (from.device().kind != DeviceKind::cpu || to.device().kind != DeviceKind::cpu) {
    const OnHost source(from), target(to);
    reorder(source.tensor(), target.tensor());
    return target.write_back();
  }
  if (from.desc() == to.desc()) {
    if (from.desc().bytes() > 0) std::memcpy(to.data(), from.data(), from.desc().bytes());
    return;
  }
  switch (size_of(from.dtype())) {
    case 1: return Reorder<std::uint8_t>(from, to).run();
    case 2: return Reorder<std::uint16_t>(from, to).run();
    case 4: return Reorder<std::uint32_t>(from, to).run();
    case 8: return Reorder<std::uint64_t>(from, to).run();
    default: throw LogicError("an element size without a copy");
  }
}

}  // namespace ronda
