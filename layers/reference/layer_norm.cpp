#include <ronda/layers/reference/operations.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace ronda::reference {
namespace {

/// Sums are float64.
class LayerNormalization final : public Operation {
 public:
  LayerNormalization(const TensorDesc& input, const LayerNormSpec& spec)
      : rows_(rows_of(input, spec, "plain loops")), epsilon_(spec.epsilon) {
    plan_ = rows_.plan;
    sums_.resize(static_cast<std::size_t>(rows_.width));
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }

  void forward(Inputs inputs, const Pass&) override {
    each_row([&](std::int64_t at) {
      const float* x = inputs.front().pointer<float>() + at;
      float* y = memory_.output.pointer<float>() + at;
      const Moments moments = moments_of(x);
      for (std::int64_t i = 0; i < rows_.width; ++i)
        y[i] = static_cast<float>(moments.normalized(x[i])) * weight(i) + bias(i);
    });
  }

  void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    const auto* x = inputs.front().pointer<float>();
    const auto* dy = output_gradient.pointer<float>();
    parameter_gradients(x, dy);
    for (const Parameter* parameter : memory_.parameters) pass.on_ready(parameter->id, pass.stream);
    if (!memory_.input_gradient().empty())
      each_row(
          [&](std::int64_t at) { data_gradient(x + at, dy + at, memory_.input_gradient().pointer<float>() + at); });
  }

 private:
  struct Moments {
    double mean, deviation;
    [[nodiscard]] double normalized(float x) const { return (x - mean) / deviation; }
  };
  [[nodiscard]] Moments moments_of(const float* x) const {
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < rows_.width; ++i) sum += x[i];
    const double mean = sum / static_cast<double>(rows_.width);
    for (std::int64_t i = 0; i < rows_.width; ++i) squares += (x[i] - mean) * (x[i] - mean);
    return {mean, std::sqrt(squares / static_cast<double>(rows_.width) + epsilon_)};
  }

  void parameter_gradients(const float* x, const float* dy) {
    for (std::size_t p = 0; p < memory_.parameters.size(); ++p) {
      std::ranges::fill(sums_, 0.0);
      each_row([&](std::int64_t at) {
        const Moments moments = moments_of(x + at);
        for (std::size_t i = 0; i < sums_.size(); ++i) {
          const auto place = static_cast<std::size_t>(at) + i;
          sums_[i] += p == 0 ? dy[place] * moments.normalized(x[place]) : dy[place];
        }
      });
      std::ranges::transform(sums_, memory_.parameters[p]->gradient.pointer<float>(),
                             [](double sum) { return static_cast<float>(sum); });
    }
  }

  /// The mean and the variance depend on each x of the row.
  void data_gradient(const float* x, const float* dy, float* dx) const {
    const Moments moments = moments_of(x);
    double sum = 0, along = 0;
    for (std::int64_t i = 0; i < rows_.width; ++i) {
      const double gradient = double{dy[i]} * weight(i);
      sum += gradient;
      along += gradient * moments.normalized(x[i]);
    }
    const auto width = static_cast<double>(rows_.width);
    for (std::int64_t i = 0; i < rows_.width; ++i)
      dx[i] = static_cast<float>((double{dy[i]} * weight(i) - sum / width - moments.normalized(x[i]) * along / width) /
                                 moments.deviation);
  }

  template <class Body>
  void each_row(Body body) const {
    for (std::int64_t row = 0; row < rows_.rows; ++row) body(row * rows_.width);
  }
  [[nodiscard]] float weight(std::int64_t i) const { return parameter(0, i, 1); }
  [[nodiscard]] float bias(std::int64_t i) const { return parameter(1, i, 0); }
  [[nodiscard]] float parameter(std::size_t index, std::int64_t i, float otherwise) const {
    return index < memory_.parameters.size() ? memory_.parameters[index]->value.pointer<float>()[i] : otherwise;
  }

  NormalizedRows rows_;
  float epsilon_;
  std::vector<double> sums_;  ///< gradients of one parameter
  OperationMemory memory_;
};

}  // namespace

std::unique_ptr<Operation> make_layer_norm(const TensorDesc& input, const LayerNormSpec& spec) {
  return std::make_unique<LayerNormalization>(input, spec);
}

}  // namespace ronda::reference
