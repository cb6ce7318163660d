#include <ronda/layers/feature_reorder.hpp>

#include <vector>

namespace ronda {

TensorDesc logical_order_of(const TensorDesc& image) { return {image.shape, image.dtype, Layout::parse("adbc")}; }
bool in_logical_order(const TensorDesc& image) { return same_bytes(image, logical_order_of(image)); }

TensorDesc FeatureReorder::plan(const TensorDesc& input, Planner& planner) {
  const TensorDesc sample = planner.take_flattened().value();
  std::vector<std::int64_t> extents{input.shape[0]};
  for (int axis = 0; axis < sample.shape.rank(); ++axis) extents.push_back(sample.shape[axis]);
  features_ = input;
  image_ = {Shape(extents), input.dtype, sample.layout.with_outermost()};
  logical_ = logical_order_of(image_);
  gradient_needed_ = planner.mode() == Mode::training && planner.input_gradient_needed();
  reorder_ = planner.primitives().reorder(image_, logical_, {planner.picker(), planner.mode(), gradient_needed_});
  const std::string name = planner.next_name(kind());
  output_id_ = planner.buffer(name + " output", logical_.bytes(), Lifetime::pass);
  if (gradient_needed_) gradient_id_ = planner.buffer(name + " input gradient", image_.bytes(), Lifetime::gradient);
  planner.note(name + ": features of " + sample.text() + " in (C, H, W) order");
  return features_;
}

void FeatureReorder::bind(const Bindings& bindings) {
  output_ = bindings.tensor(output_id_, features_);
  if (gradient_needed_) gradient_ = bindings.tensor(gradient_id_, features_);
  reorder_->bind({.output = bindings.tensor(output_id_, logical_),
                  .input_gradient = gradient_needed_ ? bindings.tensor(gradient_id_, image_) : Tensor()});
}

const Tensor& FeatureReorder::forward(const Tensor& input, const Pass& pass) {
  input_ = Tensor(image_, input.data(), input.device());
  reorder_->forward(input_, pass);
  return output_;
}

const Tensor& FeatureReorder::backward(const Tensor& output_gradient, const Pass& pass) {
  if (gradient_needed_)
    reorder_->backward(input_, Tensor(logical_, output_gradient.data(), output_gradient.device()), pass);
  return gradient_;
}

}  // namespace ronda
