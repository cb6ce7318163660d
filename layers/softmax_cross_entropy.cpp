#include <ronda/core/error.hpp>
#include <ronda/layers/softmax_cross_entropy.hpp>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace ronda {
namespace {

/// Lets no targets pass that are no labels.
class Labelled final : public LossOperation {
 public:
  Labelled(const Shape& labels, std::unique_ptr<LossOperation> operation)
      : labels_(labels), operation_(std::move(operation)) {}
  [[nodiscard]] std::size_t scratch_bytes() const noexcept override { return operation_->scratch_bytes(); }
  void run(const Tensor& outputs, const Tensor& target, const Tensor& gradient, std::byte* scratch,
           const Pass& pass) override {
    if (target.dtype() != DType::int32 || target.shape() != labels_)
      throw InputError("softmax cross entropy takes labels int32 " + labels_.text() + ", not " + target.desc().text());
    operation_->run(outputs, target, gradient, scratch, pass);
  }

 private:
  Shape labels_;
  std::unique_ptr<LossOperation> operation_;
};

Shape without_classes(const Shape& outputs) {
  const std::vector<std::int64_t> extents(outputs.begin(), outputs.end() - 1);
  return Shape(extents);
}

}  // namespace

SoftmaxCrossEntropy::SoftmaxCrossEntropy(double label_smoothing)
    : SoftmaxCrossEntropy(CrossEntropyOptions{.label_smoothing = label_smoothing}) {}

SoftmaxCrossEntropy::SoftmaxCrossEntropy(CrossEntropyOptions options)
    : spec_{static_cast<float>(options.label_smoothing), options.ignore_index, std::move(options.weight)} {
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1))
    throw InputError("label smoothing is at least 0 and below 1, not " + std::to_string(options.label_smoothing));
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
  if (!operation)
    throw InputError(
        "softmax cross entropy with weights of classes computes on the processor alone; use .device = cpu");
  return std::make_unique<Labelled>(without_classes(outputs.shape), std::move(operation));
}

}  // namespace ronda
