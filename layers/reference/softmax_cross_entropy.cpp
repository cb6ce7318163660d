#include <ronda/core/error.hpp>
#include <ronda/layers/reference/operations.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace ronda {
namespace reference {
namespace {

/// Where one sample stands after the softmax of its row.
struct Row {
  float max = 0, log_sum = 0;  ///< log Σ exp(x − max)
  bool correct = false;
};

Row softmax_row(std::span<const float> x, std::size_t label, std::span<float> probability) {
  Row row;
  const auto largest = std::max_element(x.begin(), x.end());
  row.max = *largest;
  float sum = 0;
  for (std::size_t c = 0; c < x.size(); ++c) sum += probability[c] = std::exp(x[c] - row.max);
  row.log_sum = std::log(sum);
  row.correct = static_cast<std::size_t>(largest - x.begin()) == label && !std::isnan(sum);  // of NaN none is largest
  const float inverse = 1 / sum;
  for (float& p : probability) p *= inverse;
  return row;
}

class SoftmaxCrossEntropyLoop final : public LossOperation {
 public:
  SoftmaxCrossEntropyLoop(const TensorDesc& outputs, float smoothing) : outputs_(outputs), smoothing_(smoothing) {}

  void run(const Tensor& outputs, const Tensor& target, const Tensor& gradient_tensor, std::byte*,
           const Pass& pass) override {
    const auto rows = static_cast<std::size_t>(outputs_.shape[0]),
               classes = static_cast<std::size_t>(outputs_.shape[1]);
    const float* x = outputs.pointer<float>();
    auto* gradient = gradient_tensor.pointer<float>();
    const auto* labels = target.pointer<std::int32_t>();
    const float* weights = pass.weights->pointer<float>();
    const float off = smoothing_ / static_cast<float>(classes);
    for (std::size_t n = 0; n < rows; ++n) {
      const auto label = static_cast<std::size_t>(labels[n]);
      if (label >= classes)
        throw InputError("a label of " + std::to_string(labels[n]) + " among " + std::to_string(classes) + " classes");
      const std::span<const float> row(x + n * classes, classes);
      const std::span<float> d(gradient + n * classes, classes);
      const Row result = softmax_row(row, label, d);
      double loss = (1.0 - smoothing_) * (result.log_sum - (row[label] - result.max));
      if (smoothing_ > 0)
        for (const float value : row) loss += off * (result.log_sum - (value - result.max));
      pass.control->loss += weights[n] * loss;
      pass.control->weight += weights[n];
      pass.control->metric += result.correct ? weights[n] : 0.0F;
      for (float& p : d) p = (p - off) * weights[n] * pass.loss_scale;
      d[label] -= (1 - smoothing_) * weights[n] * pass.loss_scale;
    }
  }

 private:
  TensorDesc outputs_;
  float smoothing_;
};

}  // namespace

std::unique_ptr<LossOperation> make_softmax_cross_entropy(const TensorDesc& outputs, float smoothing) {
  return std::make_unique<SoftmaxCrossEntropyLoop>(outputs, smoothing);
}

}  // namespace reference

std::unique_ptr<LossOperation> Primitives::softmax_cross_entropy(const TensorDesc& outputs, float smoothing) {
  return reference::make_softmax_cross_entropy(outputs, smoothing);
}

}  // namespace ronda
