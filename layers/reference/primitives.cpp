#include <ronda/layers/primitives.hpp>
#include <ronda/layers/reference/operations.hpp>

namespace ronda {
namespace reference {
namespace {

class ReferencePrimitives final : public Primitives {
 public:
  [[nodiscard]] std::string name() const override { return "reference loops"; }

  std::unique_ptr<Operation> make(const OperationSpec& operation, std::span<const TensorDesc> inputs,
                                  const OperationContext& context) override {
    using Made = std::unique_ptr<Operation>;
    return std::visit(
        Overloaded{
            [&](const DenseSpec& spec) -> Made {
              const DenseProblem problem{spec, inputs.front()};
              return spec.int8 ? make_int8(problem) : make_dense(problem, context);
            },
            [&](const ConvolutionSpec& spec) -> Made {
              const ConvolutionProblem problem{spec, inputs.front()};
              return spec.int8 ? make_int8(problem) : make_convolution(problem, context);
            },
            [&](const PoolSpec& spec) -> Made { return make_pool(inputs.front(), spec); },
            [&](const ElementwiseSpec& spec) -> Made { return make_elementwise(inputs.front(), spec); },
            [&](const LayerNormSpec& spec) -> Made { return make_layer_norm(inputs.front(), spec); },
            [&](const BatchNormSpec& spec) -> Made { return make_batch_norm(inputs.front(), spec, context.mode); },
            [&](const DropoutSpec& spec) -> Made { return make_dropout(inputs.front(), spec, context.name); },
            [&](const AddSpec& spec) -> Made { return make_add(inputs, spec); },
            [&](const ConcatSpec& spec) -> Made { return make_concat(inputs, spec); },
            [&](const EmbeddingSpec& spec) -> Made { return make_embedding(inputs.front(), spec); },
            [&](const PositionSpec& spec) -> Made { return make_position(inputs.front(), spec); },
            [&](const AttentionSpec& spec) -> Made { return make_attention(inputs.front(), spec, context.name); },
            [&](const ReorderSpec& spec) -> Made { return make_reorder(spec.to); },
            [](const auto&) -> Made { return nullptr; }},
        operation);
  }
};

}  // namespace
}  // namespace reference

std::unique_ptr<Primitives> make_reference_primitives() { return std::make_unique<reference::ReferencePrimitives>(); }

}  // namespace ronda
