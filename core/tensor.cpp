#include <ronda/core/buffer.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/tensor.hpp>

#include <cstring>

namespace ronda {
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
