#include <ronda/layers/loss.hpp>
#include <ronda/layers/reference/operations.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

namespace ronda {
namespace reference {
namespace {

/// Where one row stands after its softmax.
struct Softmax {
  float max = 0, log_sum = 0;  ///< log Σ exp(x − max)
  bool correct = false;

  /// −log of the class whose output is `x`.
  [[nodiscard]] float loss_of(float x) const { return log_sum - (x - max); }
};

Softmax softmax_row(std::span<const float> x, std::size_t label, std::span<float> probability) {
  Softmax row;
  const auto largest = std::max_element(x.begin(), x.end());
  row.max = *largest;
  double all = 0;  // float64, because classes may be many
  for (std::size_t c = 0; c < x.size(); ++c) all += probability[c] = std::exp(x[c] - row.max);
  const auto sum = static_cast<float>(all);
  row.log_sum = std::log(sum);
  row.correct = static_cast<std::size_t>(largest - x.begin()) == label && !std::isnan(sum);  // of NaN none is largest
  const float inverse = 1 / sum;
  for (float& p : probability) p *= inverse;
  return row;
}

class SoftmaxCrossEntropyLoop final : public LossOperation {
 public:
  SoftmaxCrossEntropyLoop(const Shape& outputs, CrossEntropySpec spec)
      : classes_(static_cast<std::size_t>(outputs[outputs.rank() - 1])),
        rows_of_sample_(static_cast<std::size_t>(outputs.without_batch().count()) / classes_),
        rows_(static_cast<std::size_t>(outputs[0]) * rows_of_sample_),
        spec_(std::move(spec)),
        off_(spec_.smoothing / static_cast<float>(classes_)),
        all_weights_(std::accumulate(spec_.weights.begin(), spec_.weights.end(), 0.0F)) {}

  [[nodiscard]] std::size_t scratch_bytes() const noexcept override { return bytes_of_row_sums(rows_); }

  void run(const Tensor& outputs, const Tensor& target, const Tensor& gradient, std::byte* scratch,
           const Pass& pass) override {
    if (target.dtype() == DType::float32) return run_by_probabilities(outputs, target, gradient, scratch, pass);
    const float* x = outputs.pointer<float>();
    auto* dx = gradient.pointer<float>();
    const auto* labels = target.pointer<std::int32_t>();
    const float* weights = pass.weights->pointer<float>();
    const auto weight_of = [&](std::size_t n) {
      return labels[n] == spec_.ignore_index ? 0 : weights[n / rows_of_sample_];
    };
    for (std::size_t n = 0; n < rows_; ++n)
      if (weight_of(n) != 0) check(labels[n]);
    add_rows(rows_, classes_, scratch, pass, [&](std::size_t n) -> RowSums {
      const std::span<float> d(dx + n * classes_, classes_);
      const float weight = weight_of(n);
      if (weight == 0) return std::ranges::fill(d, 0.0F), RowSums();
      return row({x + n * classes_, classes_}, static_cast<std::size_t>(labels[n]), d, weight, pass.loss_scale);
    });
  }

 private:
  void run_by_probabilities(const Tensor& outputs, const Tensor& target, const Tensor& gradient, std::byte* scratch,
                            const Pass& pass) const {
    const auto x = outputs.as<const float>(), targets = target.as<const float>();
    const auto d = gradient.as<float>();
    const float* weights = pass.weights->pointer<float>();
    add_rows(rows_, classes_, scratch, pass, [&](std::size_t n) -> RowSums {
      const std::size_t begin = n * classes_;
      const float weight = weights[n / rows_of_sample_];
      if (weight == 0) return std::ranges::fill(d.subspan(begin, classes_), 0.0F), RowSums();
      return row_by_probabilities(x.subspan(begin, classes_), targets.subspan(begin, classes_),
                                  d.subspan(begin, classes_), weight, pass.loss_scale);
    });
  }

  /// Of a row that counts. `weight` is its sample's.
  RowSums row_by_probabilities(std::span<const float> x, std::span<const float> targets, std::span<float> d,
                               float weight, float loss_scale) const {
    const Softmax softmax =
        softmax_row(x, static_cast<std::size_t>(std::ranges::max_element(targets) - targets.begin()), d);
    const auto share = [&](std::size_t c) { return weight_of_class(c) * ((1 - spec_.smoothing) * targets[c] + off_); };
    double loss = 0;
    float mass = 0;
    for (std::size_t c = 0; c < classes_; ++c) {
      mass += share(c);
      if (share(c) != 0) loss += share(c) * softmax.loss_of(x[c]);
    }
    for (std::size_t c = 0; c < classes_; ++c) d[c] = (mass * d[c] - share(c)) * weight * loss_scale;
    return {weight * loss, weight, softmax.correct ? weight : 0};
  }

  void check(std::int32_t label) const {
    if (label < 0 || std::cmp_greater_equal(label, classes_)) throw LabelError(label, classes_);
  }
  [[nodiscard]] float weight_of_class(std::size_t c) const { return spec_.weights.empty() ? 1.0F : spec_.weights[c]; }

  /// Of a row that counts. `weight` is its sample's.
  RowSums row(std::span<const float> x, std::size_t label, std::span<float> d, float weight, float loss_scale) const {
    const Softmax softmax = softmax_row(x, label, d);
    const float of_label = weight_of_class(label);
    double loss = (1.0 - spec_.smoothing) * of_label * softmax.loss_of(x[label]);
    if (spec_.smoothing > 0)
      for (std::size_t c = 0; c < classes_; ++c) loss += off_ * weight_of_class(c) * softmax.loss_of(x[c]);
    const float mass = spec_.weights.empty() ? 1.0F : (1 - spec_.smoothing) * of_label + off_ * all_weights_;
    for (std::size_t c = 0; c < classes_; ++c) d[c] = (mass * d[c] - off_ * weight_of_class(c)) * weight * loss_scale;
    d[label] -= (1 - spec_.smoothing) * of_label * weight * loss_scale;
    const double row_weight = double{weight} * of_label;
    return {weight * loss, row_weight, softmax.correct ? row_weight : 0};
  }

  std::size_t classes_, rows_of_sample_, rows_;
  CrossEntropySpec spec_;
  float off_, all_weights_;
};

}  // namespace

std::unique_ptr<LossOperation> make_softmax_cross_entropy(const TensorDesc& outputs, const CrossEntropySpec& spec) {
  return std::make_unique<SoftmaxCrossEntropyLoop>(outputs.shape, spec);
}

}  // namespace reference

std::unique_ptr<LossOperation> Primitives::softmax_cross_entropy(const TensorDesc& outputs,
                                                                 const CrossEntropySpec& spec) {
  return reference::make_softmax_cross_entropy(outputs, spec);
}

}  // namespace ronda
