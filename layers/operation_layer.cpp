#include <ronda/layers/operation_layer.hpp>

#include <array>

namespace ronda {

TensorDesc OperationLayer::plan(const TensorDesc& input, Planner& planner) {
  const std::string name = planner.next_name(kind());
  input_desc_ = input;
  input_gradient_needed_ = planner.mode() == Mode::training && planner.input_gradient_needed();
  operation_ = make(input, planner.primitives(), {planner.picker(), planner.mode(), input_gradient_needed_});
  const OperationPlan& needs = operation_->plan();
  request_parameters(input, name, planner);
  output_id_ = planner.buffer(name + " output", needs.output.bytes(), Lifetime::pass);
  pass_id_ = planner.buffer(name + " kept", needs.pass_bytes, Lifetime::pass);
  scratch_id_ = planner.buffer(name + " scratch", needs.scratch_bytes, Lifetime::scratch);
  if (input_gradient_needed_)
    input_gradient_id_ = planner.buffer(name + " input gradient", input.bytes(), Lifetime::gradient);
  planner.note(name + ": " + input.shape.text() + " -> " + needs.output.text() + "; " + needs.picks);
  return needs.output;
}

void OperationLayer::request_parameters(const TensorDesc& input, const std::string& name, Planner& planner) {
  static constexpr std::array suffixes{".weight", ".bias"};
  const auto& wanted = operation_->plan().parameters;
  const auto flattened = feature_order() == FeatureOrder::read ? planner.take_flattened() : std::nullopt;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ParameterRequest request{.name = name + suffixes[i], .desc = wanted[i]};
    if (i == 0) {
      const Fans fan = fans(input);
      request.fan_in = fan.in;
      request.fan_out = fan.out;
      request.flattened = flattened;
    }
    parameters_.push_back(planner.parameter(std::move(request)));
  }
}

void OperationLayer::bind(const Bindings& bindings) {
  output_ = bindings.tensor(output_id_, operation_->plan().output);
  if (input_gradient_needed_) input_gradient_ = bindings.tensor(input_gradient_id_, input_desc_);
  OperationMemory memory{.output = output_,
                         .input_gradient = input_gradient_,
                         .pass = bindings.buffer(pass_id_),
                         .scratch = bindings.buffer(scratch_id_)};
  for (std::size_t i = 0; i < parameters_.size(); ++i) memory.parameters[i] = &bindings.parameter(parameters_[i]);
  operation_->bind(memory);
}

const Tensor& OperationLayer::forward(const Tensor& input, const Pass& pass) {
  input_ = input;
  operation_->forward(input_, pass);
  return output_;
}

const Tensor& OperationLayer::backward(const Tensor& output_gradient, const Pass& pass) {
  operation_->backward(input_, output_gradient, pass);
  return input_gradient_;
}

}  // namespace ronda
