#include <ronda/core/error.hpp>
#include <ronda/layers/arithmetic.hpp>
#include <ronda/layers/reference/operations.hpp>

#include <algorithm>
#include <vector>

namespace ronda::reference {
namespace {

/// Sums over inputs and rows are float64.
class Dense final : public Operation {
 public:
  Dense(const DenseProblem& spec, const OperationContext& context) : spec_(spec) {
    const Shape& in = spec.input.shape;
    if (in.rank() < 2) throw InputError("a dense layer takes (N, features), not " + in.text());
    if (spec.outputs < 1) throw InputError("a dense layer has at least one output");
    if (spec.input.padded_count() != spec.input.count())
      throw LogicError("a dense layer cannot read the padding of " + spec.input.text());
    batch_ = in[0];
    inputs_ = in[0] > 0 ? in.count() / in[0] : 0;
    sums_.resize(static_cast<std::size_t>(inputs_));
    plan_.output = {Shape{batch_, spec.outputs}, DType::float32, {}};
    plan_.parameters = {{Shape{spec.outputs, inputs_}, DType::float32, {}}};
    if (spec.bias) plan_.parameters.push_back({Shape{spec.outputs}, DType::float32, {}});
    plan_.in_halves = context.in_halves && context.input_gradient;
    plan_.second_half_reads_gradient = spec.activation == Activation::none;
    if (spec.activation != Activation::none)
      (plan_.in_halves ? plan_.between_bytes : plan_.scratch_bytes) = plan_.output.bytes();
    plan_.picks = "plain loops";
    plan_.backward_reads_output = spec.activation != Activation::none;
  }

  void bind(const OperationMemory& memory) override { memory_ = memory; }

  void forward(Inputs inputs, const Pass&) override {
    const Tensor& input = inputs.front();
    const float* x = input.pointer<float>();
    const float* w = memory_.parameters[0]->value.pointer<float>();
    float* y = memory_.output.pointer<float>();
    for (std::int64_t n = 0; n < batch_; ++n)
      for (std::int64_t o = 0; o < spec_.outputs; ++o) {
        double sum = spec_.bias ? memory_.parameters[1]->value.pointer<float>()[o] : 0.0;
        for (std::int64_t i = 0; i < inputs_; ++i) sum += double{x[n * inputs_ + i]} * w[o * inputs_ + i];
        const auto value = static_cast<float>(sum);
        y[n * spec_.outputs + o] = spec_.activation == Activation::relu ? rectified(value) : value;
      }
  }

  void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    const float* dz = before_activation(output_gradient);
    write_parameter_gradients(inputs.front(), dz, pass);
    if (!memory_.input_gradient().empty()) data_gradient(dz);
  }

  void backward_inputs(Inputs, const Tensor& output_gradient, const Pass&) override {
    data_gradient(before_activation(output_gradient));
  }
  void backward_parameters(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    const bool relu = spec_.activation != Activation::none;
    write_parameter_gradients(inputs.front(), relu ? masked() : output_gradient.pointer<float>(), pass);
  }

 private:
  void write_parameter_gradients(const Tensor& input, const float* dz, const Pass& pass) {
    weight_gradient(input.pointer<float>(), dz);
    for (Parameter* parameter : memory_.parameters)
      if (parameter != nullptr) pass.on_ready(parameter->id, pass.stream);
  }

  /// The gradient of what the ReLU let through.
  [[nodiscard]] float* masked() const {
    return reinterpret_cast<float*>(plan_.in_halves ? memory_.between : memory_.scratch);
  }

  const float* before_activation(const Tensor& output_gradient) const {
    const float* dy = output_gradient.pointer<float>();
    if (spec_.activation == Activation::none) return dy;
    const float* y = memory_.output.pointer<float>();
    float* dz = masked();
    for (std::int64_t i = 0; i < batch_ * spec_.outputs; ++i) dz[i] = rectified_gradient(y[i], dy[i]);
    return dz;
  }

  void weight_gradient(const float* x, const float* dz) {
    float* dw = memory_.parameters[0]->gradient.pointer<float>();
    float* db = spec_.bias ? memory_.parameters[1]->gradient.pointer<float>() : nullptr;
    for (std::int64_t o = 0; o < spec_.outputs; ++o) {
      std::ranges::fill(sums_, 0.0);
      double sum = 0;
      for (std::int64_t n = 0; n < batch_; ++n) {
        const double gradient = dz[n * spec_.outputs + o];
        sum += gradient;
        for (std::int64_t i = 0; i < inputs_; ++i) sums_[static_cast<std::size_t>(i)] += gradient * x[n * inputs_ + i];
      }
      std::ranges::transform(sums_, dw + o * inputs_, [](double s) { return static_cast<float>(s); });
      if (db != nullptr) db[o] = static_cast<float>(sum);
    }
  }

  void data_gradient(const float* dz) const {
    const float* w = memory_.parameters[0]->value.pointer<float>();
    float* dx = memory_.input_gradient().pointer<float>();
    std::fill_n(dx, batch_ * inputs_, 0.0F);
    for (std::int64_t n = 0; n < batch_; ++n)
      for (std::int64_t o = 0; o < spec_.outputs; ++o)
        for (std::int64_t i = 0; i < inputs_; ++i)
          dx[n * inputs_ + i] += dz[n * spec_.outputs + o] * w[o * inputs_ + i];
  }

  DenseProblem spec_;
  std::int64_t batch_ = 0, inputs_ = 0;
  std::vector<double> sums_;  ///< weight gradients of one output
  OperationMemory memory_;
};

}  // namespace

std::unique_ptr<Operation> make_dense(const DenseProblem& spec, const OperationContext& context) {
  return std::make_unique<Dense>(spec, context);
}

}  // namespace ronda::reference
