#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <ronda/core/tensor.hpp>
#include <ronda/layers/primitives.hpp>

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

// One plain-loop operation each; outputs are in plain layout, inputs in any.

std::unique_ptr<Operation> make_dense(const DenseProblem& spec, const OperationContext& context);
std::unique_ptr<Operation> make_convolution(const ConvolutionProblem& spec, const OperationContext& context);
/// Whose spec says int8: see int8.hpp.
std::unique_ptr<Operation> make_int8(const DenseProblem& spec);
std::unique_ptr<Operation> make_int8(const ConvolutionProblem& spec);
std::unique_ptr<Operation> make_pool(const TensorDesc& input, const PoolSpec& spec);
/// Element by element in the order of the bytes: the output has the input's layout.
std::unique_ptr<Operation> make_elementwise(const TensorDesc& input, const ElementwiseSpec& spec);
/// In the input's layout.
std::unique_ptr<Operation> make_batch_norm(const TensorDesc& input, const BatchNormSpec& spec, Mode mode);
/// In the input's layout; `name` as in OperationContext.
std::unique_ptr<Operation> make_dropout(const TensorDesc& input, const DropoutSpec& spec, std::string_view name);
/// Rows of plain inputs.
std::unique_ptr<Operation> make_layer_norm(const TensorDesc& input, const LayerNormSpec& spec);
/// Element by element, of inputs with one layout.
std::unique_ptr<Operation> make_add(std::span<const TensorDesc> inputs, const AddSpec& spec);
/// Of any type; plain inputs.
std::unique_ptr<Operation> make_concat(std::span<const TensorDesc> inputs, const ConcatSpec& spec);
/// Plain tokens.
std::unique_ptr<Operation> make_embedding(const TensorDesc& tokens, const EmbeddingSpec& spec);
/// Plain.
std::unique_ptr<Operation> make_position(const TensorDesc& input, const PositionSpec& spec);
/// Plain. Scores are kept from forward to backward; `name` as in OperationContext.
std::unique_ptr<Operation> make_attention(const TensorDesc& input, const AttentionSpec& spec, std::string_view name);
std::unique_ptr<Operation> make_reorder(const TensorDesc& to);
std::unique_ptr<LossOperation> make_softmax_cross_entropy(const TensorDesc& outputs, const CrossEntropySpec& spec);

}  // namespace ronda::reference
