#pragma once
#include <cstdint>
#include <vector>

#include <ronda/core/tensor.hpp>

namespace ronda::reference {

/// Element access by logical index, whatever the layout. Slow and plain.
class Accessor {
 public:
  Accessor(const TensorDesc& desc, std::byte* data) : data_(reinterpret_cast<float*>(data)) {
    for (int axis = 0; axis < desc.shape.rank(); ++axis) offsets_.push_back(desc.layout.offsets(desc.shape, axis));
  }
  explicit Accessor(const Tensor& tensor) : Accessor(tensor.desc(), tensor.data()) {}

  template <class... Index>
  [[nodiscard]] float& operator()(Index... index) const {
    std::int64_t offset = 0;
    std::size_t axis = 0;
    ((offset += offsets_[axis++][static_cast<std::size_t>(index)]), ...);
    return data_[offset];
  }

 private:
  float* data_;
  std::vector<std::vector<std::int64_t>> offsets_;
};

}  // namespace ronda::reference
