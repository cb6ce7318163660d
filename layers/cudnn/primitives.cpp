#include <ronda/core/error.hpp>
#include <ronda/layers/activation_layouts.hpp>
#include <ronda/layers/cudnn/library.hpp>
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
  [[nodiscard]] bool on_processor() const noexcept override { return false; }

  std::unique_ptr<Operation> make(const OperationSpec& operation, std::span<const TensorDesc> inputs,
                                  const OperationContext& context) override {
    using Made = std::unique_ptr<Operation>;
    const TensorDesc& input = inputs.front();
    return std::visit(
        Overloaded{[&](const DenseSpec& spec) -> Made {
                     if (spec.int8) return nullptr;
                     return make_dense(library_, {spec, input}, context);
                   },
                   [&](const ConvolutionSpec& spec) -> Made {
                     if (spec.int8) return nullptr;
                     return make_convolution(library_, {spec, input}, context);
                   },
                   [&](const PoolSpec& spec) -> Made { return make_pool(dtype(), input, spec); },
                   [&](const ElementwiseSpec& spec) -> Made { return make_elementwise(dtype(), input, spec); },
                   [&](const AddSpec& spec) -> Made { return make_add(dtype(), inputs, spec); },
                   [&](const ConcatSpec& spec) -> Made { return make_concat(dtype(), inputs, spec); },
                   [&](const ReorderSpec& spec) -> Made { return reorder(input, spec.to); },
                   [](const auto&) -> Made { return nullptr; }},
        operation);
  }
  std::unique_ptr<LossOperation> softmax_cross_entropy(const TensorDesc& outputs,
                                                       const CrossEntropySpec& spec) override {
    return make_softmax_cross_entropy(dtype(), outputs, spec);
  }

 private:
  /// Everything on a GPU is plain: there are other types, and the features of files behind a flatten; no other layouts.
  [[nodiscard]] std::unique_ptr<Operation> reorder(const TensorDesc& from, const TensorDesc& to) const {
    if (from.dtype == dtype() && from.dtype == to.dtype && from.layout.is_plain() && from.shape.rank() == 4 &&
        from.shape == to.shape && in_logical_order(to))
      return make_transposition(dtype(), from);
    return make_conversion(dtype(), from, to);
  }

  std::shared_ptr<Library> library_;
};

}  // namespace
}  // namespace cudnn

std::unique_ptr<Primitives> make_cudnn_primitives(DeviceContext& context, Stream& stream, const EngineRules& rules) {
  return std::make_unique<cudnn::CudnnPrimitives>(context, stream, rules);
}

}  // namespace ronda
