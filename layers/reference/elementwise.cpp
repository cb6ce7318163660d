#include <ronda/layers/rectifier.hpp>
#include <ronda/layers/reference/operations.hpp>

namespace ronda::reference {
namespace {

class Relu final : public Operation {
 public:
  explicit Relu(const TensorDesc& input) {
    plan_.output = input;
    plan_.picks = "plain loops";
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(const Tensor& input, const Pass&) override {
    const auto x = input.as<float>(), y = memory_.output.as<float>();
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = rectified(x[i]);
  }
  void backward(const Tensor&, const Tensor& output_gradient, const Pass&) override {
    if (memory_.input_gradient.empty()) return;
    const auto y = memory_.output.as<float>(), dy = output_gradient.as<float>(),
               dx = memory_.input_gradient.as<float>();
    for (std::size_t i = 0; i < y.size(); ++i) dx[i] = rectified_gradient(y[i], dy[i]);
  }

 private:
  OperationMemory memory_;
};

class Reorder final : public Operation {
 public:
  explicit Reorder(const TensorDesc& to) {
    plan_.output = to;
    plan_.picks = "plain loops";
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(const Tensor& input, const Pass&) override { ronda::reorder(input, memory_.output); }
  void backward(const Tensor&, const Tensor& output_gradient, const Pass&) override {
    if (!memory_.input_gradient.empty()) ronda::reorder(output_gradient, memory_.input_gradient);
  }

 private:
  OperationMemory memory_;
};

class ReferencePrimitives final : public Primitives {
 public:
  [[nodiscard]] std::string name() const override { return "reference loops"; }
  std::unique_ptr<Operation> dense(const DenseSpec& spec, const OperationContext&) override { return make_dense(spec); }
  std::unique_ptr<Operation> convolution(const ConvolutionSpec& spec, const OperationContext&) override {
    return make_convolution(spec);
  }
  std::unique_ptr<Operation> pool(const TensorDesc& input, const PoolSpec& spec, const OperationContext&) override {
    return make_pool(input, spec);
  }
  std::unique_ptr<Operation> relu(const TensorDesc& input, const OperationContext&) override {
    return make_relu(input);
  }
  std::unique_ptr<Operation> reorder(const TensorDesc&, const TensorDesc& to, const OperationContext&) override {
    return make_reorder(to);
  }
};

}  // namespace

std::unique_ptr<Operation> make_relu(const TensorDesc& input) { return std::make_unique<Relu>(input); }
std::unique_ptr<Operation> make_reorder(const TensorDesc& to) { return std::make_unique<Reorder>(to); }

}  // namespace ronda::reference

namespace ronda {
std::unique_ptr<Primitives> make_reference_primitives() { return std::make_unique<reference::ReferencePrimitives>(); }
}  // namespace ronda
