#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <ronda/layers/onednn/images.hpp>
#include <ronda/layers/onednn/memory_desc.hpp>
#include <ronda/layers/onednn/operations.hpp>

namespace ronda::onednn {

/// y (batch, outputs) = x (batch, inputs) · wᵀ + b, as the library knows them.
struct DenseMatrices {
  std::int64_t batch, inputs, outputs;
  bool bias, relu;
  DType dtype;
  dnnl::memory::desc x, y;

  DenseMatrices(const DenseProblem& spec, std::int64_t batch_size, std::int64_t features)
      : batch(batch_size),
        inputs(features),
        outputs(spec.outputs),
        bias(spec.bias),
        relu(spec.activation == Activation::relu),
        dtype(spec.input.dtype),
        x(matrix(batch, inputs)),
        y(matrix(batch, outputs)) {}
  /// The same matrices for so many rows of the batch.
  [[nodiscard]] DenseMatrices of_rows(std::int64_t rows) const {
    DenseMatrices part = *this;
    part.batch = rows;
    part.x = part.matrix(rows, inputs);
    part.y = part.matrix(rows, outputs);
    return part;
  }
  [[nodiscard]] dnnl::memory::desc matrix(std::int64_t rows, std::int64_t columns) const {
    return plain_layout({rows, columns}, Axes::weight, dtype);
  }
  [[nodiscard]] dnnl::memory::desc transposed(std::int64_t rows, std::int64_t columns) const {
    return to_memory_desc({Shape{rows, columns}, dtype, Layout(std::array{1, 0}, {})}, Axes::weight);
  }
  [[nodiscard]] dnnl::memory::desc any_weight() const { return any_layout({outputs, inputs}, Axes::weight, dtype); }
  [[nodiscard]] dnnl::memory::desc plain_weight() const { return matrix(outputs, inputs); }
  [[nodiscard]] std::string text() const {
    return Shape{batch, inputs}.text() + " to " + std::to_string(outputs) + (bias ? "" : " without bias") +
           (relu ? " with relu" : "") + text_of_type(dtype);
  }
};

/// The three products of a dense operation. The weights' layout is their choice, and serves all directions.
class DenseProducts {
 public:
  virtual ~DenseProducts() = default;
  [[nodiscard]] virtual TensorDesc weight() const = 0;
  [[nodiscard]] virtual std::string picks() const = 0;
  [[nodiscard]] virtual std::size_t scratch_bytes() const = 0;

  // Numbers of the matrices' type. `b` is null for none.

  /// In evaluation a sample's outputs do not depend on its neighbours.
  virtual void forward(const void* x, const void* w, const void* b, void* y, std::byte* scratch, Mode mode) = 0;
  virtual void backward_weights(const void* x, const void* dz, void* dw, std::byte* scratch) = 0;
  virtual void backward_data(const void* dz, const void* w, void* dx, std::byte* scratch) = 0;
};

/// The layout of the weights by the time of all directions together; rows where other operations read them too. Each
/// direction by its fastest implementation: the library's, our kernel's, or Strassen's algorithm.
[[nodiscard]] std::unique_ptr<DenseProducts> choose_products(const Runtime& runtime, const DenseMatrices& matrices,
                                                             const OperationContext& context);

}  // namespace ronda::onednn
