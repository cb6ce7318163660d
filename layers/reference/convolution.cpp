#include <ronda/layers/arithmetic.hpp>
#include <ronda/layers/reference/operations.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace ronda::reference {
namespace {

/// Convolution, activation and pooling one after the other; intermediate values are kept from forward to backward. Sums
/// over inputs, rows and pixels are float64.
class Convolution final : public Operation {
 public:
  Convolution(const ConvolutionProblem& spec, const OperationContext& context)
      : spec_(spec), inner_{convolution_output(spec), DType::float32, {}} {
    plan_.parameters = {{weight_shape(spec, spec.input.shape), DType::float32, {}}};
    if (spec.bias) plan_.parameters.push_back({Shape{spec.outputs}, DType::float32, {}});
    sums_.resize(static_cast<std::size_t>(plan_.parameters[0].count() + spec.outputs));
    plan_.output = inner_;
    plan_.in_halves = context.in_halves && context.input_gradient && !spec.pool;
    plan_.second_half_reads_gradient = spec.activation == Activation::none;
    masked_offset_ = spec.pool ? inner_.bytes() : 0;
    const std::size_t masked_bytes = spec.activation == Activation::none ? 0 : inner_.bytes();
    (plan_.in_halves ? plan_.between_bytes : plan_.scratch_bytes) = masked_offset_ + masked_bytes;
    plan_.picks = "plain loops";
    plan_.backward_reads_output = spec.activation != Activation::none && !spec.pool;
    if (!spec.pool) return;
    pool_ = make_pool(inner_, *spec.pool);
    plan_.output = pool_->plan().output;
    plan_.pass_bytes = inner_.bytes();
  }

  void bind(const OperationMemory& memory) override {
    memory_ = memory;
    result_ = spec_.pool ? Tensor(inner_, memory.pass) : memory.output;
    if (!pool_) return;
    pool_gradient_ = Tensor(inner_, memory.scratch);
    pool_->bind({.output = memory.output, .input_gradients = {pool_gradient_}});
  }

  void forward(Inputs inputs, const Pass& pass) override {
    const Tensor& input = inputs.front();
    const Accessor x(input), y(result_), weight(memory_.parameters[0]->value);
    each_output([&](auto n, auto oh, auto ow, auto o) {
      double sum = spec_.bias ? memory_.parameters[1]->value.template pointer<float>()[o] : 0.0;
      each_tap(oh, ow, o, [&](auto h, auto w, auto c, auto kh, auto kw, auto i) {
        sum += double{x(n, h, w, c)} * weight(o, i, kh, kw);
      });
      const auto value = static_cast<float>(sum);
      y(n, oh, ow, o) = spec_.activation == Activation::relu ? rectified(value) : value;
    });
    if (pool_) pool_->forward({&result_, 1}, pass);
  }

  void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    if (pool_) pool_->backward({&result_, 1}, output_gradient, pass);
    const Tensor gradient = before_activation(pool_ ? pool_gradient_ : output_gradient);
    write_parameter_gradients(inputs.front(), gradient, pass);
    if (!memory_.input_gradient().empty()) data_gradient(Accessor(gradient));
  }

  void backward_inputs(Inputs, const Tensor& output_gradient, const Pass&) override {
    data_gradient(Accessor(before_activation(output_gradient)));
  }
  void backward_parameters(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    write_parameter_gradients(inputs.front(), spec_.activation == Activation::none ? output_gradient : masked(), pass);
  }

 private:
  void write_parameter_gradients(const Tensor& input, const Tensor& gradient, const Pass& pass) {
    parameter_gradients(Accessor(input), Accessor(gradient));
    for (Parameter* parameter : memory_.parameters)
      if (parameter != nullptr) pass.on_ready(parameter->id, pass.stream);
  }

  /// The gradient of what the ReLU let through.
  [[nodiscard]] Tensor masked() const {
    return {inner_, (plan_.in_halves ? memory_.between : memory_.scratch) + masked_offset_};
  }

  Tensor before_activation(const Tensor& output_gradient) const {
    if (spec_.activation == Activation::none) return output_gradient;
    const Accessor y(result_), dy(output_gradient), dz(masked());
    each_output(
        [&](auto n, auto h, auto w, auto o) { dz(n, h, w, o) = rectified_gradient(y(n, h, w, o), dy(n, h, w, o)); });
    return masked();
  }

  void parameter_gradients(const Accessor& x, const Accessor& dz) {
    const Shape weights = weight_shape(spec_, spec_.input.shape);
    std::ranges::fill(sums_, 0.0);
    const auto weight_sums = std::span(sums_).first(static_cast<std::size_t>(weights.count()));
    const auto bias_sums = std::span(sums_).last(static_cast<std::size_t>(spec_.outputs));
    each_output([&](auto n, auto oh, auto ow, auto o) {
      const double gradient = dz(n, oh, ow, o);
      bias_sums[static_cast<std::size_t>(o)] += gradient;
      each_tap(oh, ow, o, [&](auto h, auto w, auto c, auto kh, auto kw, auto i) {
        const std::int64_t place = ((o * weights[1] + i) * weights[2] + kh) * weights[3] + kw;
        weight_sums[static_cast<std::size_t>(place)] += gradient * x(n, h, w, c);
      });
    });
    const auto write = [](std::span<const double> sums, const Tensor& gradient) {
      std::ranges::transform(sums, gradient.pointer<float>(), [](double sum) { return static_cast<float>(sum); });
    };
    write(weight_sums, memory_.parameters[0]->gradient);
    if (spec_.bias) write(bias_sums, memory_.parameters[1]->gradient);
  }

  void data_gradient(const Accessor& dz) const {
    std::fill_n(memory_.input_gradient().pointer<float>(), spec_.input.padded_count(), 0.0F);
    const Accessor dx(memory_.input_gradient()), weight(memory_.parameters[0]->value);
    each_output([&](auto n, auto oh, auto ow, auto o) {
      const float gradient = dz(n, oh, ow, o);
      each_tap(oh, ow, o, [&](auto h, auto w, auto c, auto kh, auto kw, auto i) {
        dx(n, h, w, c) += gradient * weight(o, i, kh, kw);
      });
    });
  }

  template <class Body>
  void each_output(Body body) const {
    for (std::int64_t n = 0; n < inner_.shape[0]; ++n)
      for (std::int64_t h = 0; h < inner_.shape[1]; ++h)
        for (std::int64_t w = 0; w < inner_.shape[2]; ++w)
          for (std::int64_t o = 0; o < inner_.shape[3]; ++o) body(n, h, w, o);
  }

  /// Calls `body(h, w, c, kh, kw, i)` for each element of the input that an output sees, and of its weight.
  template <class Body>
  void each_tap(std::int64_t oh, std::int64_t ow, std::int64_t o, Body body) const {
    const Shape& in = spec_.input.shape;
    const std::int64_t channels = in[3] / spec_.groups, first = o / (spec_.outputs / spec_.groups) * channels;
    for (std::int64_t kh = 0; kh < spec_.kernel.height; ++kh)
      for (std::int64_t kw = 0; kw < spec_.kernel.width; ++kw) {
        const std::int64_t h = oh * spec_.stride.height - spec_.padding.height + kh * spec_.dilation.height,
                           w = ow * spec_.stride.width - spec_.padding.width + kw * spec_.dilation.width;
        if (h < 0 || h >= in[1] || w < 0 || w >= in[2]) continue;
        for (std::int64_t i = 0; i < channels; ++i) body(h, w, first + i, kh, kw, i);
      }
  }

  ConvolutionProblem spec_;
  TensorDesc inner_;  ///< before pooling
  std::size_t masked_offset_ = 0;
  std::vector<double> sums_;  ///< gradients of all weights, then of all biases
  std::unique_ptr<Operation> pool_;
  Tensor result_, pool_gradient_;
  OperationMemory memory_;
};

}  // namespace

std::unique_ptr<Operation> make_convolution(const ConvolutionProblem& spec, const OperationContext& context) {
  return std::make_unique<Convolution>(spec, context);
}

}  // namespace ronda::reference
