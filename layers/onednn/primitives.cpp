#include <ronda/core/error.hpp>
#include <ronda/layers/onednn/operations.hpp>

namespace ronda::onednn {
namespace {

std::string version() {
  const dnnl_version_t* v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

/// What `make` returns; the library's errors become Ronda's, with what was being made.
template <class Make>
std::unique_ptr<Operation> making(const std::string& what, Make&& make) {
  try {
    return make();
  } catch (const dnnl::error& error) {
    throw Error("oneDNN " + version() + " cannot make a " + what + ": " + error.what());
  }
}

class OnednnPrimitives final : public Primitives {
 public:
  explicit OnednnPrimitives(int threads) { runtime_.threads = threads; }

  std::string name() const override {
    return "oneDNN " + version() + ", " + std::to_string(runtime_.threads) +
           (runtime_.threads == 1 ? " thread" : " threads");
  }
  /// Concatenations are the plain loops', which copy whole rows.
  std::unique_ptr<Operation> make(const OperationSpec& operation, std::span<const TensorDesc> inputs,
                                  const OperationContext& context) override {
    using Made = std::unique_ptr<Operation>;
    const std::string what = kind_of(operation) + " of " + inputs.front().text();
    return std::visit(
        Overloaded{
            [&](const DenseSpec& spec) -> Made {
              return making(what + " to " + std::to_string(spec.outputs), [&] {
                return make_dense(runtime_, {spec, inputs.front()}, context);
              });
            },
            [&](const ConvolutionSpec& spec) -> Made {
              return making(what + " to " + std::to_string(spec.outputs) + " channels with " + text_of_windows(spec),
                            [&] {
                              return make_convolution(runtime_, {spec, inputs.front()}, context);
                            });
            },
            [&](const PoolSpec& spec) -> Made { return make_pool(runtime_, inputs.front(), spec, context); },
            [&](const ElementwiseSpec& spec) -> Made { return make_elementwise(runtime_, inputs.front(), spec); },
            [&](const LayerNormSpec& spec) -> Made { return make_layer_norm(runtime_, inputs.front(), spec, context); },
            [&](const BatchNormSpec& spec) -> Made { return make_batch_norm(runtime_, inputs.front(), spec, context); },
            [&](const DropoutSpec& spec) -> Made { return make_dropout(runtime_, inputs.front(), spec, context); },
            [&](const AddSpec& spec) -> Made { return make_add(runtime_, inputs, spec); },
            [&](const ReorderSpec& spec) -> Made {
              return making(what + " to " + spec.to.text(),
                            [&] { return make_reorder(runtime_, inputs.front(), spec.to); });
            },
            [](const auto&) -> Made { return nullptr; }},
        operation);
  }

 private:
  Runtime runtime_;
};

}  // namespace
}  // namespace ronda::onednn

std::unique_ptr<ronda::Primitives> ronda::make_onednn_primitives(int threads) {
  return std::make_unique<onednn::OnednnPrimitives>(threads);
}
