// Operations that are kernels of our own and nothing else.
#include <ronda/layers/cudnn/geometry.hpp>
#include <ronda/layers/cudnn/kernels.hpp>
#include <ronda/layers/cudnn/library.hpp>

namespace ronda::cudnn {
namespace {

class Pooling final : public Operation {
 public:
  Pooling(const TensorDesc& input, const PoolSpec& spec) : input_(input), geometry_(geometry(input.shape, spec)) {
    require_plain(input, "a pooling");
    plan_.output = {pool_output(input.shape, spec), DType::float32, {}};
    plan_.picks = "kernel";
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(const Tensor& input, const Pass& pass) override {
    launch(pass.stream, plan_.output.count(), Pool{geometry_, input.pointer<float>(), memory_.output.pointer<float>()});
  }
  void backward(const Tensor& input, const Tensor& output_gradient, const Pass& pass) override {
    if (memory_.input_gradient.empty()) return;
    launch(pass.stream, input_.count(),
           PoolGradient{geometry_, input.pointer<float>(), output_gradient.pointer<float>(),
                        memory_.input_gradient.pointer<float>(), false});
  }

 private:
  TensorDesc input_;
  PoolGeometry geometry_;
  OperationMemory memory_;
};

class ReluOperation final : public Operation {
 public:
  explicit ReluOperation(const TensorDesc& input) {
    require_plain(input, "a ReLU");
    plan_.output = input;
    plan_.picks = "kernel";
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(const Tensor& input, const Pass& pass) override {
    launch(pass.stream, plan_.output.count(), Relu{input.pointer<float>(), memory_.output.pointer<float>()});
  }
  void backward(const Tensor&, const Tensor& output_gradient, const Pass& pass) override {
    if (memory_.input_gradient.empty()) return;
    launch(pass.stream, plan_.output.count(),
           ReluGradient{memory_.output.pointer<float>(), output_gradient.pointer<float>(),
                        memory_.input_gradient.pointer<float>()});
  }

 private:
  OperationMemory memory_;
};

class SoftmaxCrossEntropyOperation final : public LossOperation {
 public:
  SoftmaxCrossEntropyOperation(const TensorDesc& outputs, float smoothing)
      : rows_(outputs.shape[0]), classes_(outputs.shape[1]), smoothing_(smoothing) {}
  [[nodiscard]] std::size_t scratch_bytes() const noexcept override {
    return static_cast<std::size_t>(2 * rows_) * sizeof(double);
  }
  void run(const Tensor& outputs, const Tensor& target, const Tensor& gradient, std::byte* scratch,
           const Pass& pass) override {
    auto* losses = reinterpret_cast<double*>(scratch);
    const float* weights = pass.weights->pointer<float>();
    launch(pass.stream, rows_,
           SoftmaxRow{outputs.pointer<float>(), target.pointer<std::int32_t>(), weights, gradient.pointer<float>(),
                      losses, classes_, smoothing_, pass.loss_scale});
    launch(pass.stream, SumLosses{losses, weights, rows_, pass.control});
  }

 private:
  std::int64_t rows_, classes_;
  float smoothing_;
};

}  // namespace

std::unique_ptr<Operation> make_pool(const TensorDesc& input, const PoolSpec& spec) {
  return std::make_unique<Pooling>(input, spec);
}
std::unique_ptr<Operation> make_relu(const TensorDesc& input) { return std::make_unique<ReluOperation>(input); }
std::unique_ptr<LossOperation> make_softmax_cross_entropy(const TensorDesc& outputs, float smoothing) {
  return std::make_unique<SoftmaxCrossEntropyOperation>(outputs, smoothing);
}

}  // namespace ronda::cudnn
