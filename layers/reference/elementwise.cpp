#include <ronda/layers/elementwise.hpp>
#include <ronda/layers/reference/operations.hpp>

namespace ronda::reference {
namespace {

template <class Row>
class Elementwise final : public Operation {
 public:
  explicit Elementwise(const TensorDesc& input) {
    plan_ = plan_of_function(input, Row::backward_reads_input, "plain loops");
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(Inputs inputs, const Pass&) override {
    const auto x = inputs.front().as<float>(), y = memory_.output.as<float>();
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = Row::value(x[i]);
  }
  void backward(Inputs inputs, const Tensor& output_gradient, const Pass&) override {
    if (memory_.input_gradient().empty()) return;
    const Tensor& tensor = Row::backward_reads_input ? inputs.front() : memory_.output;
    const auto kept = tensor.as<float>(), dy = output_gradient.as<float>(), dx = memory_.input_gradient().as<float>();
    for (std::size_t i = 0; i < kept.size(); ++i) dx[i] = Row::gradient(kept[i], dy[i]);
  }

 private:
  OperationMemory memory_;
};

/// Adds in the order of the inputs.
class Add final : public Operation {
 public:
  Add(std::span<const TensorDesc> inputs, const AddSpec& spec) : relu_(spec.activation == Activation::relu) {
    plan_ = plan_of_sum(inputs, spec, "plain loops");
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(Inputs inputs, const Pass&) override {
    const auto y = memory_.output.as<float>();
    for (std::size_t i = 0; i < y.size(); ++i) {
      float sum = inputs.front().pointer<float>()[i];
      for (const Tensor& input : inputs.subspan(1)) sum += input.pointer<float>()[i];
      y[i] = relu_ ? rectified(sum) : sum;
    }
  }
  void backward(Inputs, const Tensor& output_gradient, const Pass&) override {
    const auto y = memory_.output.as<float>(), dy = output_gradient.as<float>(),
               dx = memory_.input_gradient().as<float>();
    for (std::size_t i = 0; i < y.size(); ++i) dx[i] = rectified_gradient(y[i], dy[i]);
  }

 private:
  bool relu_;
  OperationMemory memory_;
};

/// Of any type.
class Concat final : public Operation {
 public:
  Concat(std::span<const TensorDesc> inputs, const ConcatSpec& spec) : columns_(columns_of(inputs, spec, "copies")) {
    plan_ = columns_.plan;
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(Inputs inputs, const Pass&) override {
    each_row([&](std::size_t input, std::size_t row, std::size_t place, std::size_t bytes) {
      std::copy_n(inputs[input].data() + row, bytes, memory_.output.data() + place);
    });
  }
  void backward(Inputs, const Tensor& output_gradient, const Pass&) override {
    each_row([&](std::size_t input, std::size_t row, std::size_t place, std::size_t bytes) {
      const Tensor& gradient = memory_.input_gradients[input];
      if (!gradient.empty()) std::copy_n(output_gradient.data() + place, bytes, gradient.data() + row);
    });
  }

 private:
  /// body(input, offset of its row, offset in the output, bytes)
  template <class Body>
  void each_row(Body body) const {
    const std::size_t element = size_of(plan_.output.dtype);
    std::size_t place = 0;
    for (std::size_t row = 0; row < static_cast<std::size_t>(columns_.rows); ++row)
      for (std::size_t input = 0; input < columns_.widths.size(); ++input) {
        const std::size_t bytes = static_cast<std::size_t>(columns_.widths[input]) * element;
        body(input, row * bytes, place, bytes);
        place += bytes;
      }
  }

  Columns columns_;
  OperationMemory memory_;
};

class Reorder final : public Operation {
 public:
  explicit Reorder(const TensorDesc& to) {
    plan_.output = to;
    plan_.picks = "plain loops";
    plan_.backward_reads_inputs = plan_.backward_reads_output = false;
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(Inputs inputs, const Pass&) override { ronda::reorder(inputs.front(), memory_.output); }
  void backward(Inputs, const Tensor& output_gradient, const Pass&) override {
    if (!memory_.input_gradient().empty()) ronda::reorder(output_gradient, memory_.input_gradient());
  }

 private:
  OperationMemory memory_;
};

}  // namespace

std::unique_ptr<Operation> make_elementwise(const TensorDesc& input, const ElementwiseSpec& spec) {
  return elementwise::with_row(spec.function, [&]<class Row>(std::type_identity<Row>) -> std::unique_ptr<Operation> {
    return std::make_unique<Elementwise<Row>>(input);
  });
}
std::unique_ptr<Operation> make_add(std::span<const TensorDesc> inputs, const AddSpec& spec) {
  return std::make_unique<Add>(inputs, spec);
}
std::unique_ptr<Operation> make_concat(std::span<const TensorDesc> inputs, const ConcatSpec& spec) {
  return std::make_unique<Concat>(inputs, spec);
}
std::unique_ptr<Operation> make_reorder(const TensorDesc& to) { return std::make_unique<Reorder>(to); }

}  // namespace ronda::reference
