#include <ronda/layers/feature_reorder.hpp>
#include <ronda/layers/operation_layer.hpp>
#include <ronda/layers/sequential.hpp>

#include <algorithm>

namespace ronda {
namespace {

TensorDesc plain(const TensorDesc& desc) { return {desc.shape, desc.dtype, {}}; }

class ToPlain final : public OperationLayer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "to_plain"; }
  [[nodiscard]] FeatureOrder feature_order() const noexcept override { return FeatureOrder::kept; }

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
  TensorDesc desc = input;
  for (Layer* layer : fused()) desc = plan_next(*layer, desc, planner);
  if (!planner.may_give_any_layout()) desc = plan_plain(desc, planner);
  if (!planner.may_give_any_feature_order()) desc = plan_logical_order(desc, planner);
  return desc;
}

TensorDesc Sequential::plan_next(Layer& layer, TensorDesc desc, Planner& planner) {
  if (!layer.reads_any_layout()) desc = plan_plain(desc, planner);
  if (layer.feature_order() == FeatureOrder::logical) desc = plan_logical_order(desc, planner);
  desc = planner.plan(layer, desc);
  run_.push_back(&layer);
  return desc;
}

TensorDesc Sequential::plan_plain(const TensorDesc& desc, Planner& planner) {
  if (same_bytes(desc, plain(desc))) return plain(desc);
  run_.push_back(reorders_.emplace_back(std::make_unique<ToPlain>()).get());
  return planner.plan(*run_.back(), desc);
}

TensorDesc Sequential::plan_logical_order(const TensorDesc& desc, Planner& planner) {
  if (!planner.flattened()) return desc;
  run_.push_back(reorders_.emplace_back(std::make_unique<FeatureReorder>()).get());
  return planner.plan(*run_.back(), desc);
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
