#include <ronda/core/error.hpp>
#include <ronda/layers/softmax_cross_entropy.hpp>

#include <string>

namespace ronda {
SoftmaxCrossEntropy::SoftmaxCrossEntropy(double label_smoothing) : smoothing_(static_cast<float>(label_smoothing)) {
  if (!(label_smoothing >= 0 && label_smoothing < 1))
    throw InputError("label smoothing is at least 0 and below 1, not " + std::to_string(label_smoothing));
}

void SoftmaxCrossEntropy::plan(const TensorDesc& outputs, Planner& planner) {
  const DType dtype = planner.primitives().dtype();
  if (outputs.shape.rank() != 2 || !same_bytes(outputs, {outputs.shape, dtype, {}}))
    throw InputError("softmax cross entropy takes plain " + std::string(name_of(dtype)) + " (N, classes), not " +
                     outputs.text());
  outputs_ = outputs;
  operation_ = planner.primitives().softmax_cross_entropy(outputs, smoothing_);
  gradient_id_ = planner.buffer("loss gradient", outputs.bytes(), Lifetime::gradient);
  scratch_id_ = planner.buffer("loss scratch", operation_->scratch_bytes(), Lifetime::scratch);
}

void SoftmaxCrossEntropy::bind(const Bindings& bindings) {
  gradient_ = bindings.tensor(gradient_id_, outputs_);
  scratch_ = bindings.buffer(scratch_id_);
}

void SoftmaxCrossEntropy::check(const Tensor& target) const {
  if (target.dtype() != DType::int32 || target.shape() != Shape{outputs_.shape[0]})
    throw InputError("softmax cross entropy takes labels int32 " + Shape{outputs_.shape[0]}.text() + ", not " +
                     target.desc().text());
}

const Tensor& SoftmaxCrossEntropy::forward_backward(const Tensor& outputs, const Tensor& target, const Pass& pass) {
  check(target);
  operation_->run(outputs, target, gradient_, scratch_, pass);
  return gradient_;
}

void SoftmaxCrossEntropy::forward(const Tensor& outputs, const Tensor& target, const Pass& pass) {
  check(target);
  operation_->run(outputs, target, gradient_, scratch_, pass);  // the gradient's memory is free outside a training pass
}

}  // namespace ronda
