#include <ronda/layers/operation_layer.hpp>
#include <ronda/layers/sequential.hpp>
#include <ronda/runtime/core/error.hpp>

#include <algorithm>

namespace ronda {
namespace {

TensorDesc plain(const TensorDesc& desc) { return {desc.shape, desc.dtype, {}}; }

class ToPlain final : public OperationLayer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "to_plain"; }

 protected:
  std::unique_ptr<Operation> make(const TensorDesc& input, Primitives& primitives,
                                  const OperationContext& context) override {
    return primitives.reorder(input, plain(input), context);
  }
};

}  // namespace

std::vector<Layer*> Sequential::fused() const {
  std::vector<Layer*> remaining;
  for (const auto& layer : layers_)
    if (remaining.empty() || !remaining.back()->absorb(*layer)) remaining.push_back(layer.get());
  return remaining;
}

TensorDesc Sequential::plan(const TensorDesc& input, Planner& planner) {
  if (!run_.empty()) throw LogicError("a model is planned once; make another for another plan");
  const bool needed_before = planner.input_gradient_needed();
  const std::size_t parameters_before = planner.parameters().size();
  TensorDesc desc = input;
  for (Layer* layer : fused()) {
    // What lies before the first parameter needs no gradient, unless somebody before this composite does.
    planner.set_input_gradient_needed(needed_before || planner.parameters().size() > parameters_before);
    if (!layer->reads_any_layout() && !same_bytes(desc, plain(desc))) {
      run_.push_back(reorders_.emplace_back(std::make_unique<ToPlain>()).get());
      desc = run_.back()->plan(desc, planner);
    }
    desc = layer->plan(layer->reads_any_layout() ? desc : plain(desc), planner);
    run_.push_back(layer);
  }
  planner.set_input_gradient_needed(needed_before);
  return desc;
}

bool Sequential::runs_on_any_device() const noexcept {
  return std::ranges::all_of(layers_, [](const auto& layer) { return layer->runs_on_any_device(); });
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
  for (auto layer = run_.rbegin(); layer != run_.rend(); ++layer) {
    gradient = &(*layer)->backward(*gradient, pass);
    if (gradient->empty()) break;  // nothing before this layer has parameters
  }
  return *gradient;
}

void Sequential::visit(StateVisitor& visitor) {
  for (const auto& layer : layers_) layer->visit(visitor);
}

}  // namespace ronda
