#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/layers/losses.hpp>
#include <ronda/layers/processor_alone.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ronda {
namespace difference {

double checked(double bound, bool sound, const char* what) {
  if (sound && std::isfinite(bound)) return bound;
  throw InputError(std::string(what) + ", not " + shortest(bound));
}

void check_unit(double unit, std::string_view loss) {
  if (!(unit > 0) || !std::isfinite(unit))
    throw InputError("the unit of a " + std::string(loss) + " is above 0, not " + shortest(unit));
}

}  // namespace difference

namespace {

/// Lets no targets pass that are neither labels nor probabilities.
class Checked final : public LossOperation {
 public:
  /// @param takes_probabilities  whether the operation does
  Checked(const Shape& outputs, bool takes_probabilities, std::unique_ptr<LossOperation> operation)
      : labels_(std::span(outputs.begin(), outputs.end() - 1)),
        probabilities_(outputs),
        takes_probabilities_(takes_probabilities),
        operation_(std::move(operation)) {}
  [[nodiscard]] std::size_t scratch_bytes() const noexcept override { return operation_->scratch_bytes(); }
  void run(const Tensor& outputs, const Tensor& target, const Tensor& gradient, std::byte* scratch,
           const Pass& pass) override {
    const bool soft = target.dtype() == DType::float32 && target.shape() == probabilities_;
    if (!soft && (target.dtype() != DType::int32 || target.shape() != labels_))
      throw InputError("softmax cross entropy takes labels int32 " + labels_.text() + " or probabilities float32 " +
                       probabilities_.text() + ", not " + target.desc().text());
    if (soft && !takes_probabilities_)
      throw processor_alone("softmax cross entropy with probabilities as targets, as mixup makes them,");
    operation_->run(outputs, target, gradient, scratch, pass);
  }

 private:
  Shape labels_, probabilities_;
  bool takes_probabilities_;
  std::unique_ptr<LossOperation> operation_;
};

}  // namespace

SoftmaxCrossEntropy::SoftmaxCrossEntropy(double label_smoothing)
    : SoftmaxCrossEntropy(CrossEntropyOptions{.label_smoothing = label_smoothing}) {}

SoftmaxCrossEntropy::SoftmaxCrossEntropy(CrossEntropyOptions options)
    : spec_{static_cast<float>(options.label_smoothing), options.ignore_index, std::move(options.weight)} {
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1))
    throw InputError("label smoothing is at least 0 and below 1, not " + shortest(options.label_smoothing));
  for (const float weight : spec_.weights)
    if (!(weight >= 0) || !std::isfinite(weight))
      throw InputError("the weight of a class is at least 0, not " + std::to_string(weight));
}

std::unique_ptr<LossOperation> SoftmaxCrossEntropy::make(const TensorDesc& outputs, Primitives& primitives) const {
  const std::int64_t classes = outputs.shape.rank() < 2 ? 0 : outputs.shape[outputs.shape.rank() - 1];
  if (classes == 0)
    throw InputError("softmax cross entropy takes (N, classes) or (N, …, classes), not " + outputs.text());
  if (!spec_.weights.empty() && std::cmp_not_equal(spec_.weights.size(), classes))
    throw InputError("softmax cross entropy was given " + std::to_string(spec_.weights.size()) + " weights for the " +
                     std::to_string(classes) + " classes of outputs " + outputs.text());
  auto operation = primitives.softmax_cross_entropy(outputs, spec_);
  if (!operation) throw processor_alone("softmax cross entropy with weights of classes");
  return std::make_unique<Checked>(outputs.shape, primitives.on_processor(), std::move(operation));
}

BinaryCrossEntropy::BinaryCrossEntropy(std::vector<float> positive) : positive_(std::move(positive)) {
  for (const float weight : positive_)
    if (!(weight >= 0) || !std::isfinite(weight))
      throw InputError("a pos_weight of BCE with logits is at least 0, not " + shortest(weight));
}

void BinaryCrossEntropy::check(const Shape& outputs) const {
  const std::int64_t last = outputs[outputs.rank() - 1];
  if (positive_.size() > 1 && std::cmp_not_equal(positive_.size(), last))
    throw InputError("BCE with logits was given " + std::to_string(positive_.size()) + " pos_weights, and outputs " +
                     outputs.text() + " take one for all, or " + std::to_string(last));
}

double BinaryCrossEntropy::value(double x, double y, std::size_t column) const {
  const double tail = std::log1p(std::exp(-std::abs(x)));
  const double yes = tail + std::max(-x, 0.0), no = tail + std::max(x, 0.0);  // −log σ(x), −log(1 − σ(x))
  return positive(column) * y * yes + (1 - y) * no;
}

float BinaryCrossEntropy::gradient(float x, float y, std::size_t column) const {
  const float tail = std::exp(-std::abs(x)), larger = 1 / (1 + tail), smaller = tail * larger;
  const float yes = x >= 0 ? larger : smaller, no = x >= 0 ? smaller : larger;  // σ(x), 1 − σ(x)
  return (1 - y) * yes - positive(column) * y * no;
}

BCEWithLogitsLoss::BCEWithLogitsLoss(std::vector<float> pos_weight)
    : ElementwiseLoss(BinaryCrossEntropy(std::move(pos_weight))) {}

}  // namespace ronda
