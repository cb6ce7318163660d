#pragma once
#include <cstdint>
#include <vector>

#include <ronda/core/tensor.hpp>

namespace ronda::reference {

/// Element access by logical index, whatever the layout. Plain, and so slow.
class Accessor {
 public:
  Accessor(const TensorDesc& desc, std::byte* data) : data_(reinterpret_cast<float*>(data)) {
    for (int axis = 0; axis < desc.shape.rank(); ++axis) {
      starts_[static_cast<std::size_t>(axis)] = offsets_.size();
      const std::vector<std::int64_t> offsets = desc.layout.offsets(desc.shape, axis);
      offsets_.insert(offsets_.end(), offsets.begin(), offsets.end());
    }
  }
  explicit Accessor(const Tensor& tensor) : Accessor(tensor.desc(), tensor.data()) {}

  template <class... Index>
  [[nodiscard]] float& operator()(Index... index) const {
    const std::int64_t* const offsets = offsets_.data();  // without a call for each in builds that are not optimised
    const std::size_t* start = starts_;
    std::int64_t offset = 0;
    ((offset += offsets[*start++ + static_cast<std::size_t>(index)]), ...);
    return data_[offset];
  }

 private:
  float* data_;
  std::vector<std::int64_t> offsets_;         ///< of all axes, one after another
  std::size_t starts_[Shape::capacity] = {};  ///< of each
};

/// Offsets of elements by their number in row-major order, for loops that do not ask how many axes there are.
class Elements {
 public:
  explicit Elements(const TensorDesc& desc) : shape_(desc.shape) {
    for (int axis = 0; axis < shape_.rank(); ++axis) offsets_.push_back(desc.layout.offsets(shape_, axis));
  }
  [[nodiscard]] std::int64_t count() const noexcept { return shape_.count(); }
  [[nodiscard]] std::size_t operator[](std::int64_t number) const {
    std::int64_t offset = 0;
    for (int axis = shape_.rank() - 1; axis >= 0; number /= shape_[axis--])
      offset += offsets_[static_cast<std::size_t>(axis)][static_cast<std::size_t>(number % shape_[axis])];
    return static_cast<std::size_t>(offset);
  }

 private:
  Shape shape_;
  std::vector<std::vector<std::int64_t>> offsets_;
};

}  // namespace ronda::reference
