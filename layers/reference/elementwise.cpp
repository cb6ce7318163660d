#include <ronda/core/error.hpp>
#include <ronda/layers/elementwise.hpp>
#include <ronda/layers/reference/operations.hpp>

#include <vector>

namespace ronda::reference {
namespace {

template <class Row>
class Elementwise final : public Operation {
 public:
  explicit Elementwise(const TensorDesc& input) {
    plan_.output = input;
    plan_.picks = "plain loops";
    plan_.backward_reads_inputs = Row::backward_reads_input;
    plan_.backward_reads_output = !Row::backward_reads_input;
    plan_.in_place = true;
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
    for (const TensorDesc& input : inputs)
      if (input != inputs.front())
        throw LogicError("an addition cannot read " + inputs.front().text() + " beside " + input.text());
    plan_.output = inputs.front();
    plan_.picks = "plain loops";
    plan_.backward_reads_inputs = false;
    plan_.backward_reads_output = relu_;
    plan_.in_place = true;
    plan_.gradients = relu_ ? InputGradients::common : InputGradients::output;
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

/// An input is `rows` rows of so many bytes each; the output's rows hold one of each.
class Concat final : public Operation {
 public:
  Concat(std::span<const TensorDesc> inputs, const ConcatSpec& spec) {
    std::vector<Shape> shapes;
    for (const TensorDesc& input : inputs) {
      if (!same_bytes(input, {input.shape, input.dtype, {}}) || input.dtype != inputs.front().dtype)
        throw LogicError("a concatenation cannot read " + input.text());
      shapes.push_back(input.shape);
      std::int64_t row = 1;
      for (int axis = spec.axis; axis < input.shape.rank(); ++axis) row *= input.shape[axis];
      row_bytes_.push_back(static_cast<std::size_t>(row) * size_of(input.dtype));
    }
    for (int axis = 0; axis < spec.axis; ++axis) rows_ *= static_cast<std::size_t>(inputs.front().shape[axis]);
    plan_.output = {output_shape(spec, shapes), inputs.front().dtype, {}};
    plan_.picks = "copies";
    plan_.backward_reads_inputs = plan_.backward_reads_output = false;
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(Inputs inputs, const Pass&) override {
    each_row([&](std::size_t input, std::size_t row, std::size_t place) {
      std::copy_n(inputs[input].data() + row, row_bytes_[input], memory_.output.data() + place);
    });
  }
  void backward(Inputs, const Tensor& output_gradient, const Pass&) override {
    each_row([&](std::size_t input, std::size_t row, std::size_t place) {
      const Tensor& gradient = memory_.input_gradients[input];
      if (!gradient.empty()) std::copy_n(output_gradient.data() + place, row_bytes_[input], gradient.data() + row);
    });
  }

 private:
  template <class Body>
  void each_row(Body body) const {
    std::size_t place = 0;
    for (std::size_t row = 0; row < rows_; ++row)
      for (std::size_t input = 0; input < row_bytes_.size(); ++input) {
        body(input, row * row_bytes_[input], place);
        place += row_bytes_[input];
      }
  }

  std::size_t rows_ = 1;
  std::vector<std::size_t> row_bytes_;
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
