#include <ronda/layers/planner.hpp>
#include <ronda/layers/sequential.hpp>
#include <ronda/runtime/core/error.hpp>

#include <ranges>

namespace ronda {

void Sequential::fuse() {
  for (const auto& layer : layers_)
    if (run_.empty() || !run_.back()->absorb(*layer)) run_.push_back(layer.get());
}

TensorDesc Sequential::plan(const TensorDesc& input, Planner& planner) {
  if (!run_.empty()) throw LogicError("a model is planned once; make another for another plan");
  fuse();
  const bool needed_before = planner.input_gradient_needed();
  const std::size_t parameters_before = planner.parameters().size();
  TensorDesc desc = input;
  for (Layer* layer : run_) {
    // What lies before the first parameter needs no gradient, unless somebody before this composite does.
    planner.set_input_gradient_needed(needed_before || planner.parameters().size() > parameters_before);
    desc = layer->plan(desc, planner);
  }
  planner.set_input_gradient_needed(needed_before);
  return desc;
}

void Sequential::bind(const Bindings& bindings) {
  for (Layer* layer : run_) layer->bind(bindings);
}

const Tensor& Sequential::forward(const Tensor& input, const Pass& pass) {
  const Tensor* tensor = &input;
  for (Layer* layer : run_) tensor = &layer->forward(*tensor, pass);
  return *tensor;
}

const Tensor& Sequential::backward(const Tensor& output_gradient, const Pass& pass) {
  const Tensor* gradient = &output_gradient;
  for (Layer* layer : run_ | std::views::reverse) {
    gradient = &layer->backward(*gradient, pass);
    if (gradient->empty()) break;  // nothing before this layer has parameters
  }
  return *gradient;
}

void Sequential::visit(StateVisitor& visitor) {
  for (const auto& layer : layers_) layer->visit(visitor);
}

}  // namespace ronda
