#include <ronda/core/error.hpp>
#include <ronda/layers/feature_reorder.hpp>
#include <ronda/layers/flatten.hpp>

namespace ronda {
namespace {

bool samples_are_dense(const TensorDesc& image) {
  return image.padded_count() == image.count() && image.layout.without_outermost().has_value();
}

}  // namespace

TensorDesc Flatten::plan(const TensorDesc& input, Planner& planner) {
  const Shape& in = input.shape;
  if (in.rank() < 2) throw InputError("a flatten takes (N, …), not " + in.text());
  if (in.rank() == 2) {  // nothing to flatten
    image_ = input;
    return output_desc_ = input_desc_ = input;
  }
  input_desc_ = image_ = input;
  gradient_needed_ = planner.mode() == Mode::training && planner.input_gradient_needed();
  const bool any_order = in.rank() != 4 || planner.may_give_any_feature_order() || in_logical_order(input);
  if (!samples_are_dense(input) || !any_order) {
    image_ = any_order ? TensorDesc{in, input.dtype, {}} : logical_order_of(input);
    const std::string name = planner.next_name(kind());
    reorder_ = planner.primitives().reorder(input, image_, {planner.picker(), planner.mode(), gradient_needed_});
    copy_id_ = planner.buffer(name + " output", image_.bytes(), Lifetime::pass);
    if (gradient_needed_) gradient_id_ = planner.buffer(name + " input gradient", input.bytes(), Lifetime::gradient);
  }
  if (in.rank() == 4 && !in_logical_order(image_))
    planner.set_flattened({in.without_batch(), input.dtype, *image_.layout.without_outermost()});
  return output_desc_ = {Shape{in[0], in.without_batch().count()}, input.dtype, {}};
}

void Flatten::bind(const Bindings& bindings) {
  if (!reorder_) return;
  copy_ = bindings.tensor(copy_id_, image_);
  if (gradient_needed_) gradient_ = bindings.tensor(gradient_id_, input_desc_);
  reorder_->bind({.output = copy_, .input_gradient = gradient_});
}

const Tensor& Flatten::forward(const Tensor& input, const Pass& pass) {
  input_ = input;
  if (reorder_) reorder_->forward(input_, pass);
  output_ = Tensor(output_desc_, reorder_ ? copy_.data() : input.data(), input.device());
  return output_;
}

const Tensor& Flatten::backward(const Tensor& output_gradient, const Pass& pass) {
  if (!gradient_needed_ && reorder_) return gradient_;
  const Tensor image_gradient(image_, output_gradient.data(), output_gradient.device());
  if (reorder_)
    reorder_->backward(input_, image_gradient, pass);
  else
    gradient_ = image_gradient;
  return gradient_;
}

}  // namespace ronda
