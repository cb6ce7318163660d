#include <ronda/core/error.hpp>
#include <ronda/layers/cudnn/library.hpp>
#include <ronda/layers/feature_reorder.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda {
namespace cudnn {
namespace {

class CudnnPrimitives final : public Primitives {
 public:
  CudnnPrimitives(DeviceContext& context, Stream& stream, const EngineRules& rules)
      : library_(std::make_shared<Library>(context, stream, rules)) {}
  [[nodiscard]] std::string name() const override { return library_->name(); }
  [[nodiscard]] DType dtype() const noexcept override { return library_->dtype(); }
  std::unique_ptr<Operation> dense(const DenseSpec& spec, const OperationContext& context) override {
    return make_dense(library_, spec, context);
  }
  std::unique_ptr<Operation> convolution(const ConvolutionSpec& spec, const OperationContext& context) override {
    return make_convolution(library_, spec, context);
  }
  std::unique_ptr<Operation> pool(const TensorDesc& input, const PoolSpec& spec, const OperationContext&) override {
    return make_pool(dtype(), input, spec);
  }
  std::unique_ptr<Operation> relu(const TensorDesc& input, const OperationContext&) override {
    return make_relu(dtype(), input);
  }
  /// Everything on a GPU is plain: there are other types, and the features of files behind a flatten; no other layouts.
  std::unique_ptr<Operation> reorder(const TensorDesc& from, const TensorDesc& to, const OperationContext&) override {
    if (from.dtype == dtype() && from.dtype == to.dtype && from.layout.is_plain() && from.shape.rank() == 4 &&
        from.shape == to.shape && in_logical_order(to))
      return make_transposition(dtype(), from);
    return make_conversion(dtype(), from, to);
  }
  std::unique_ptr<LossOperation> softmax_cross_entropy(const TensorDesc& outputs, float smoothing) override {
    return make_softmax_cross_entropy(dtype(), outputs, smoothing);
  }

 private:
  std::shared_ptr<Library> library_;
};

}  // namespace
}  // namespace cudnn

std::unique_ptr<Primitives> make_cudnn_primitives(DeviceContext& context, Stream& stream, const EngineRules& rules) {
  return std::make_unique<cudnn::CudnnPrimitives>(context, stream, rules);
}

}  // namespace ronda
