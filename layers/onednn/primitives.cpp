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
  std::unique_ptr<Operation> dense(const DenseSpec& spec, const OperationContext& context) override {
    return making("dense layer of " + spec.input.text() + " to " + std::to_string(spec.outputs),
                  [&] { return make_dense(runtime_, spec, context); });
  }
  std::unique_ptr<Operation> convolution(const ConvolutionSpec& spec, const OperationContext& context) override {
    return making("convolution of " + spec.input.text() + " to " + std::to_string(spec.outputs) +
                      " channels with kernel " + std::to_string(spec.kernel),
                  [&] { return make_convolution(runtime_, spec, context); });
  }
  std::unique_ptr<Operation> pool(const TensorDesc& input, const PoolSpec& spec,
                                  const OperationContext& context) override {
    return make_pool(runtime_, input, spec, context);
  }
  std::unique_ptr<Operation> relu(const TensorDesc& input, const OperationContext&) override {
    return make_relu(runtime_, input);
  }
  std::unique_ptr<Operation> reorder(const TensorDesc& from, const TensorDesc& to, const OperationContext&) override {
    return making("copy of " + from.text() + " to " + to.text(), [&] { return make_reorder(runtime_, from, to); });
  }

 private:
  Runtime runtime_;
};

}  // namespace
}  // namespace ronda::onednn

std::unique_ptr<ronda::Primitives> ronda::make_onednn_primitives(int threads) {
  return std::make_unique<onednn::OnednnPrimitives>(threads);
}
