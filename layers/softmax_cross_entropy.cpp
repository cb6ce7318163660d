#include <ronda/core/error.hpp>
#include <ronda/layers/softmax_cross_entropy.hpp>

#include <string>
#include <utility>

namespace ronda {
namespace {

/// Lets no targets pass that are no labels.
class Labelled final : public LossOperation {
 public:
  Labelled(std::int64_t rows, std::unique_ptr<LossOperation> operation)
      : labels_{rows}, operation_(std::move(operation)) {}
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

}  // namespace

SoftmaxCrossEntropy::SoftmaxCrossEntropy(double label_smoothing) : smoothing_(static_cast<float>(label_smoothing)) {
  if (!(label_smoothing >= 0 && label_smoothing < 1))
    throw InputError("label smoothing is at least 0 and below 1, not " + std::to_string(label_smoothing));
}

std::unique_ptr<LossOperation> SoftmaxCrossEntropy::make(const TensorDesc& outputs, Primitives& primitives) const {
  if (outputs.shape.rank() != 2) throw InputError("softmax cross entropy takes (N, classes), not " + outputs.text());
  return std::make_unique<Labelled>(outputs.shape[0], primitives.softmax_cross_entropy(outputs, smoothing_));
}

}  // namespace ronda
