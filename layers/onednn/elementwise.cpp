#include <ronda/core/error.hpp>
#include <ronda/layers/onednn/images.hpp>
#include <ronda/layers/onednn/memory_desc.hpp>
#include <ronda/layers/onednn/operations.hpp>

#include <array>

namespace ronda::onednn {
namespace {

/// On the stored elements in their order, padding included: ReLU needs no layout.
class Relu final : public Operation {
 public:
  Relu(const Runtime& runtime, const TensorDesc& input) : threads_(runtime.threads) {
    plan_.output = input;
    plan_.picks = "our loops";
    count_ = static_cast<std::size_t>(input.padded_count());
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(const Tensor& input, const Pass&) override {
    relu(input.pointer<float>(), memory_.output.pointer<float>(), count_, threads_);
  }
  void backward(const Tensor&, const Tensor& output_gradient, const Pass&) override {
    if (memory_.input_gradient.empty()) return;
    relu_backward(output_gradient.pointer<float>(), memory_.output.pointer<float>(),
                  memory_.input_gradient.pointer<float>(), count_, threads_);
  }

 private:
  int threads_;
  std::size_t count_;
  OperationMemory memory_;
};

class Reorder final : public Operation {
 public:
  Reorder(const Runtime& runtime, const TensorDesc& from, const TensorDesc& to)
      : forward_(make_reorder(runtime, to_memory_desc(from, Axes::image), to_memory_desc(to, Axes::image))),
        backward_(make_reorder(runtime, to_memory_desc(to, Axes::image), to_memory_desc(from, Axes::image))) {
    if (from.shape != to.shape) throw LogicError("cannot copy " + from.text() + " to " + to.text());
    plan_.output = to;
    plan_.picks = "reorder " + from.layout.tag() + " to " + to.layout.tag();
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(const Tensor& input, const Pass&) override {
    forward_.run(std::array<void*, 2>{input.data(), memory_.output.data()});
  }
  void backward(const Tensor&, const Tensor& output_gradient, const Pass&) override {
    if (memory_.input_gradient.empty()) return;
    backward_.run(std::array<void*, 2>{output_gradient.data(), memory_.input_gradient.data()});
  }

 private:
  Kernel forward_, backward_;
  OperationMemory memory_;
};

}  // namespace

std::unique_ptr<Operation> make_relu(const Runtime& runtime, const TensorDesc& input) {
  return std::make_unique<Relu>(runtime, input);
}
std::unique_ptr<Operation> make_reorder(const Runtime& runtime, const TensorDesc& from, const TensorDesc& to) {
  return std::make_unique<Reorder>(runtime, from, to);
}

}  // namespace ronda::onednn
