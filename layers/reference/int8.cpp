#include <ronda/core/error.hpp>
#include <ronda/layers/arithmetic.hpp>
#include <ronda/layers/reference/operations.hpp>

#include <limits>

namespace ronda::reference {
namespace {

using int8::byte_of;

/// A dense operation is a convolution of one pixel.
ConvolutionProblem as_convolution(const DenseProblem& spec) {
  const Shape& in = spec.input.shape;
  if (in.rank() != 2) throw LogicError("a dense layer of int8 takes (N, features), not " + in.text());
  ConvolutionProblem problem;
  problem.outputs = spec.outputs;
  problem.kernel = 1;
  problem.bias = spec.bias;
  problem.activation = spec.activation;
  problem.input = {Shape{in[0], 1, 1, in[1]}, DType::float32, {}};
  return problem;
}

/// As int8.hpp says it, one output after the other; pooling behind it.
class Int8Products final : public Operation {
 public:
  Int8Products(const ConvolutionProblem& spec, const TensorDesc& weight, const Shape& output)
      : spec_(spec), inner_{convolution_output(spec), DType::float32, {}} {
    const TensorDesc channels{{spec.outputs}, DType::float32, {}}, one{{1}, DType::float32, {}};
    plan_.parameters = {weight, channels, one, one};
    if (spec.bias) plan_.parameters.push_back(channels);
    plan_.output = {output, DType::float32, {}};
    plan_.picks = "int8, plain loops";
    if (!spec.pool) return;
    pool_ = make_pool(inner_, *spec.pool);
    plan_.output = pool_->plan().output;
    plan_.scratch_bytes = inner_.bytes();
  }

  void bind(const OperationMemory& memory) override {
    memory_ = memory;
    result_ = Tensor(inner_, pool_ ? memory.scratch : memory.output.data());
    if (pool_) pool_->bind({.output = memory.output});
  }

  void forward(Inputs inputs, const Pass& pass) override {
    const Accessor x(spec_.input, inputs.front().data()), y(result_);
    for (std::int64_t n = 0; n < inner_.shape[0]; ++n) {
      const bool spoiled = has_not_finite(x, n);
      for (std::int64_t h = 0; h < inner_.shape[1]; ++h)
        for (std::int64_t w = 0; w < inner_.shape[2]; ++w)
          for (std::int64_t o = 0; o < inner_.shape[3]; ++o)
            y(n, h, w, o) = spoiled ? std::numeric_limits<float>::quiet_NaN() : output(x, n, h, w, o);
    }
    if (pool_) pool_->forward({&result_, 1}, pass);
  }

  void backward(Inputs, const Tensor&, const Pass&) override { throw LogicError("operations of int8 only compute"); }

 private:
  [[nodiscard]] float number(std::size_t parameter, std::int64_t i = 0) const {
    return memory_.parameters[parameter]->value.pointer<float>()[i];
  }

  [[nodiscard]] bool has_not_finite(const Accessor& x, std::int64_t n) const {
    const Shape& in = spec_.input.shape;
    for (std::int64_t h = 0; h < in[1]; ++h)
      for (std::int64_t w = 0; w < in[2]; ++w)
        for (std::int64_t c = 0; c < in[3]; ++c)
          if (int8::not_finite(x(n, h, w, c)) != 0) return true;
    return false;
  }

  [[nodiscard]] float output(const Accessor& x, std::int64_t n, std::int64_t oh, std::int64_t ow,
                             std::int64_t o) const {
    const Shape& in = spec_.input.shape;
    const float scale = number(int8::input_scale), inverse = 1 / scale, zero = number(int8::input_zero);
    const Tensor& weight = memory_.parameters[int8::weight]->value;
    const auto* q = weight.pointer<std::int8_t>() + o * (weight.desc().count() / spec_.outputs);
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < in[3]; ++i)
      for (std::int64_t kh = 0; kh < spec_.kernel.height; ++kh)
        for (std::int64_t kw = 0; kw < spec_.kernel.width; ++kw, ++q) {
          const std::int64_t h = oh * spec_.stride.height - spec_.padding.height + kh * spec_.dilation.height,
                             w = ow * spec_.stride.width - spec_.padding.width + kw * spec_.dilation.width;
          if (h < 0 || h >= in[1] || w < 0 || w >= in[2]) continue;
          sum += (byte_of(x(n, h, w, i), inverse, zero) - byte_of(0, inverse, zero)) * *q;
        }
    const float y = int8::restored(static_cast<std::int32_t>(sum), scale * number(int8::weight_scale, o),
                                   spec_.bias ? number(int8::bias, o) : 0);
    return spec_.activation == Activation::relu ? rectified(y) : y;
  }

  ConvolutionProblem spec_;
  TensorDesc inner_;  ///< before pooling
  std::unique_ptr<Operation> pool_;
  Tensor result_;
  OperationMemory memory_;
};

}  // namespace

std::unique_ptr<Operation> make_int8(const DenseProblem& spec) {
  const ConvolutionProblem problem = as_convolution(spec);
  const Shape weight{spec.outputs, spec.input.shape[1]}, output{spec.input.shape[0], spec.outputs};
  return std::make_unique<Int8Products>(problem, TensorDesc{weight, DType::int8, {}}, output);
}

std::unique_ptr<Operation> make_int8(const ConvolutionProblem& spec) {
  if (spec.groups != 1) throw InputError("a convolution with groups does not compute in int8");
  return std::make_unique<Int8Products>(spec, TensorDesc{weight_shape(spec, spec.input.shape), DType::int8, {}},
                                        convolution_output(spec));
}

}  // namespace ronda::reference
