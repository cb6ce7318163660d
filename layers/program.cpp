#include <ronda/core/clock.hpp>
#include <ronda/layers/graph/plan.hpp>
#include <ronda/layers/program.hpp>

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <utility>

namespace ronda {

using graph::BackwardCall;
using graph::GradientCall;
using graph::ParameterSumCall;
using graph::Plan;
using graph::ReadyCall;
using graph::Step;
using graph::SumCall;

/// The plan with addresses.
struct Program::Bound {
  /// An input of a step that is the caller's, and so has another address in each pass.
  struct Feed {
    std::size_t step, slot, input;
  };
  std::byte* memory;
  Device device;
  std::vector<std::vector<Tensor>> inputs;  ///< of each step
  std::vector<Feed> feeds;
  /// Parameters as a step is given them, where they are not as the model has them: its gradient goes into a buffer, to
  /// be added; or the weight of a convolution of sequences has the axes of an image's.
  std::deque<Parameter> seen;
  struct Call {
    std::optional<std::size_t> step;  ///< whose backward it is
    std::function<void(const Pass&)> run;
  };
  std::vector<Call> backward;

  Bound(Plan& plan, std::span<Parameter> parameters, std::span<const Tensor> states, std::byte* arena, Device where);

  [[nodiscard]] Tensor at(const Plan& plan, std::size_t buffer, const TensorDesc& desc) const {
    return {desc, memory + plan.offset(buffer), device};
  }
  /// Without an address if the bytes are the caller's.
  [[nodiscard]] Tensor tensor_of(const Plan& plan, std::size_t value) const {
    const auto& values = plan.lowered.values;
    const std::size_t base = values[value].base;
    if (values[base].input) return {values[value].desc, nullptr, device};
    return at(plan, plan.output_of[base], values[value].desc);
  }

  /// Sets the addresses of the caller's inputs, for one pass.
  void feed(Inputs given);
  /// These calls.
  void run_backward(std::size_t begin, std::size_t end, const Pass& pass) const;

 private:
  void bind_inputs(const Plan& plan, std::size_t step);
  void bind_step(Plan& plan, std::size_t step, const BackwardCall* call, std::span<Parameter> parameters,
                 std::span<const Tensor> states);
  void bind_sum(Operation& add, std::vector<Tensor> parts, const Tensor& sum);
  void bind_call(const Plan& plan, const GradientCall& call, std::span<Parameter> parameters);
};

// ---- what it needs --------------------------------------------------------------------------------------------------

Program::Program(Graph graph, const Loss* loss, Primitives& primitives, Picker& picker, const ProgramOptions& options)
    : options_(options),
      plan_(std::make_unique<Plan>(graph::make_plan(std::move(graph), loss, primitives, picker, options))) {}
Program::~Program() = default;
Program::Program(Program&&) noexcept = default;

std::span<const GraphInput> Program::inputs() const noexcept { return plan_->graph.inputs; }
std::span<const ParameterRequest> Program::parameters() const noexcept { return plan_->lowered.parameters; }
std::span<const GraphState> Program::states() const noexcept { return plan_->graph.states; }
std::span<const BufferRequest> Program::buffer_requests() const noexcept { return plan_->memory.requests(); }
const BufferPlan& Program::buffer_plan() const noexcept { return plan_->buffers; }
const TensorDesc& Program::output() const noexcept { return plan_->lowered.values[plan_->lowered.output].desc; }
std::span<const std::string> Program::lines() const noexcept { return plan_->lowered.lines; }
const std::string& Program::first_cpu_only_operation() const noexcept {
  return plan_->lowered.first_cpu_only_operation;
}

const TensorDesc& Program::input_desc(std::size_t input) const {
  std::size_t value = 0;
  while (plan_->lowered.values[value].input != input) ++value;
  return plan_->lowered.values[value].desc;
}

std::vector<std::size_t> Program::rank_sums() const {
  std::set<std::size_t> counts;
  for (const Step& step : plan_->lowered.steps)
    if (const std::size_t count = step.operation->plan().rank_sums; count > 0) counts.insert(count);
  return {counts.begin(), counts.end()};
}

std::vector<PartMessages> Program::part_messages() const {
  std::vector<PartMessages> all;
  for (const Step& step : plan_->lowered.steps)
    if (const PartMessages& own = step.operation->plan().parts;
        !own.empty() && std::ranges::find(all, own) == all.end())
      all.push_back(own);
  return all;
}

std::vector<GradientWrites> Program::gradient_writes() const {
  std::vector<GradientWrites> all;
  for (const GradientCall& call : plan_->backward.calls) {
    GradientWrites writes;
    if (const auto* step = std::get_if<BackwardCall>(&call)) {
      const auto& parameters = plan_->lowered.steps[step->step].parameters;
      for (std::size_t i = 0; i < parameters.size(); ++i)
        if (!step->parameter_gradients[i] && step->half != graph::Half::second) writes.written.push_back(parameters[i]);
      if (!step->ready_calls_follow && step->half != graph::Half::first)
        writes.complete.assign(parameters.begin(), parameters.end());
    } else if (const auto* ready = std::get_if<ReadyCall>(&call)) {
      writes.complete = {ready->parameter};
    }
    all.push_back(std::move(writes));
  }
  return all;
}

std::vector<OperationCosts> Program::costs() const {
  std::vector<OperationCosts> all;
  const auto& steps = plan_->lowered.steps;
  const auto kept = [&](std::size_t buffer) {  // memory that is shared counts for the first buffer
    const BufferRequest& request = plan_->memory.requests()[buffer];
    return !request.used.empty() && request.used.back().to > steps.size() ? request.bytes : 0;
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const OperationPlan& needs = steps[i].operation->plan();
    OperationCosts costs{.name = steps[i].name, .picks = needs.picks, .output = needs.output.shape};
    for (const TensorDesc& parameter : needs.parameters)
      costs.parameters += static_cast<std::size_t>(parameter.count());
    std::vector<Shape> shapes;
    for (const std::size_t input : steps[i].inputs) shapes.push_back(plan_->lowered.values[input].desc.shape);
    costs.flops = flops_of(steps[i].spec, shapes);
    costs.kept_bytes = kept(plan_->output_of[steps[i].output]) + kept(plan_->kept_of[i]);
    all.push_back(std::move(costs));
  }
  return all;
}

// ---- memory ---------------------------------------------------------------------------------------------------------

void Program::bind(std::span<Parameter> parameters, std::span<const Tensor> states, std::byte* memory, Device device) {
  bound_ = std::make_unique<Bound>(*plan_, parameters, states, memory, device);
  output_ = bound_->tensor_of(*plan_, plan_->lowered.output);
  if (options_.mode == Mode::training || plan_->loss)
    output_gradient_ = bound_->at(*plan_, plan_->backward.output_gradient, output());
}

Program::Bound::Bound(Plan& plan, std::span<Parameter> parameters, std::span<const Tensor> states, std::byte* arena,
                      Device where)
    : memory(arena), device(where), inputs(plan.lowered.steps.size()) {
  std::vector<const BackwardCall*> calls(inputs.size());
  for (const auto& call : plan.backward.calls)
    if (const auto* step = std::get_if<BackwardCall>(&call)) calls[step->step] = step;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    bind_inputs(plan, i);
    bind_step(plan, i, calls[i], parameters, states);
  }
  for (const auto& call : plan.backward.calls) bind_call(plan, call, parameters);
}

void Program::Bound::bind_inputs(const Plan& plan, std::size_t step) {
  const auto& values = plan.lowered.values;
  for (const std::size_t value : plan.lowered.steps[step].inputs) {
    if (const auto input = values[values[value].base].input) feeds.push_back({step, inputs[step].size(), *input});
    inputs[step].push_back(tensor_of(plan, value));
  }
}

/// @param call  its backward; null: it has none
void Program::Bound::bind_step(Plan& plan, std::size_t index, const BackwardCall* call, std::span<Parameter> parameters,
                               std::span<const Tensor> states) {
  const Step& step = plan.lowered.steps[index];
  OperationMemory given{.output = tensor_of(plan, step.output),
                        .input_gradients = std::vector<Tensor>(step.inputs.size()),
                        .parameters = {},
                        .states = {},
                        .pass = memory + plan.offset(plan.kept_of[index]),
                        .between = memory + plan.offset(plan.between_of[index]),
                        .scratch = memory + plan.offset(plan.scratch_of[index])};
  for (std::size_t i = 0; call != nullptr && i < step.inputs.size(); ++i)
    if (const auto gradient = call->input_gradients[i])
      given.input_gradients[i] = at(plan, *gradient, plan.lowered.values[step.inputs[i]].desc);
  for (std::size_t i = 0; i < step.parameters.size(); ++i) {
    Parameter* parameter = &parameters[index_of(step.parameters[i])];
    if (call != nullptr && call->parameter_gradients[i]) {
      parameter = &seen.emplace_back(*parameter);
      parameter->gradient = at(plan, *call->parameter_gradients[i], parameter->gradient.desc());
    }
    if (const TensorDesc& wanted = step.operation->plan().parameters[i]; wanted.shape != parameter->value.shape()) {
      parameter = &seen.emplace_back(*parameter);
      for (Tensor* tensor : {&parameter->value, &parameter->gradient})
        *tensor = Tensor(wanted, tensor->data(), tensor->device());
    }
    given.parameters.push_back(parameter);
  }
  for (const StateId id : step.states) given.states.push_back(states[static_cast<std::size_t>(id)]);
  step.operation->bind(given);
}

void Program::Bound::bind_sum(Operation& add, std::vector<Tensor> parts, const Tensor& sum) {
  OperationMemory given;
  given.output = sum;
  given.input_gradients.resize(parts.size());
  add.bind(given);
  backward.push_back({std::nullopt, [&add, parts = std::move(parts)](const Pass& pass) { add.forward(parts, pass); }});
}

void Program::Bound::bind_call(const Plan& plan, const GradientCall& call, std::span<Parameter> parameters) {
  std::visit(Overloaded{[&](const BackwardCall& c) {
                          Operation& operation = *plan.lowered.steps[c.step].operation;
                          const Tensor gradient = at(plan, c.output_gradient, operation.plan().output);
                          const auto run = [&operation, &given = inputs[c.step], gradient, half = c.half,
                                            reports = !c.ready_calls_follow](const Pass& pass) {
                            Pass here = pass;
                            if (!reports) here.on_ready = {};
                            switch (half) {
                              case graph::Half::both: return operation.backward(given, gradient, here);
                              case graph::Half::first: return operation.backward_inputs(given, gradient, here);
                              case graph::Half::second: return operation.backward_parameters(given, gradient, here);
                            }
                          };
                          backward.push_back({c.step, run});
                        },
                        [&](const SumCall& c) {
                          const TensorDesc& desc = c.add->plan().output;
                          std::vector<Tensor> parts;
                          for (const std::size_t part : c.parts) parts.push_back(at(plan, part, desc));
                          bind_sum(*c.add, std::move(parts), at(plan, c.sum, desc));
                        },
                        [&](const ParameterSumCall& c) {
                          const TensorDesc& desc = c.add->plan().output;
                          const Tensor& gradient = parameters[index_of(c.parameter)].gradient;
                          const Tensor sum(desc, gradient.data(), gradient.device());
                          bind_sum(*c.add, {sum, at(plan, c.part, desc)}, sum);
                        },
                        [&](const ReadyCall& c) {
                          backward.push_back(
                              {std::nullopt, [id = c.parameter](const Pass& pass) { pass.on_ready(id, pass.stream); }});
                        }},
             call);
}

// ---- running --------------------------------------------------------------------------------------------------------

void Program::Bound::feed(Inputs given) {
  for (const Feed& feed : feeds) {
    Tensor& fed = inputs[feed.step][feed.slot];
    fed = Tensor(fed.desc(), given[feed.input].data(), given[feed.input].device());
  }
}

void Program::Bound::run_backward(std::size_t begin, std::size_t end, const Pass& pass) const {
  for (std::size_t i = begin; i < end; ++i) {
    backward[i].run(pass);
    pass.after_operation();
  }
}

const Tensor& Program::forward(Inputs inputs, const Pass& pass) {
  bound_->feed(inputs);
  const graph::Lowered& lowered = plan_->lowered;
  for (std::size_t i = 0; i < lowered.steps.size(); ++i) {
    lowered.steps[i].operation->forward(bound_->inputs[i], pass);
    pass.after_operation();
  }
  if (const auto input = lowered.values[lowered.values[lowered.output].base].input)
    output_ = Tensor(output_.desc(), inputs[*input].data(), inputs[*input].device());
  return output_;
}

std::vector<OperationCosts> Program::measure(Inputs inputs, const Pass& pass) {
  std::vector<OperationCosts> all = costs();
  Pass quiet = pass;
  quiet.on_ready = {};
  const auto time = [&](double& best, auto&& run) {
    const double begin = steady_seconds();
    run();
    quiet.stream.synchronize();
    const double seconds = steady_seconds() - begin;
    if (best == 0 || seconds < best) best = seconds;
  };
  std::vector<double> backward(bound_->backward.size());  // of its calls
  bound_->feed(inputs);
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i)
      time(all[i].forward, [&] { plan_->lowered.steps[i].operation->forward(bound_->inputs[i], quiet); });
    for (std::size_t i = 0; i < backward.size(); ++i) time(backward[i], [&] { bound_->backward[i].run(quiet); });
  }
  for (std::size_t i = 0; i < backward.size(); ++i)
    if (const auto step = bound_->backward[i].step) all[*step].backward += backward[i];
  return all;
}

const Tensor& Program::loss(const Tensor& target, const Pass& pass) {
  plan_->loss->run(output_, target, output_gradient_, bound_->memory + plan_->offset(plan_->loss_scratch), pass);
  return output_gradient_;
}

void Program::backward(const Pass& pass) {
  backward_inputs(pass);
  backward_parameters(pass);
}

void Program::backward_inputs(const Pass& pass) { bound_->run_backward(0, plan_->backward.second_half, pass); }

void Program::backward_parameters(const Pass& pass) {
  bound_->run_backward(plan_->backward.second_half, bound_->backward.size(), pass);
}

std::vector<Tensor> Program::passed() const {
  std::vector<Tensor> tensors;
  for (const std::size_t value : plan_->lowered.passed) tensors.push_back(bound_->tensor_of(*plan_, value));
  return tensors;
}

std::vector<Tensor> Program::passed_gradients() const {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < plan_->backward.passed_gradients.size(); ++i)
    tensors.push_back(
        bound_->at(*plan_, plan_->backward.passed_gradients[i], plan_->lowered.values[plan_->lowered.passed[i]].desc));
  return tensors;
}

Tensor Program::input_gradient(std::size_t input) const {
  const auto buffer = plan_->backward.input_gradients.at(input);
  return buffer ? bound_->at(*plan_, *buffer, input_desc(input)) : Tensor();
}

namespace {

Graph with_whole_gradients(Graph graph) {
  for (GraphParameter& parameter : graph.parameters) parameter.sparse = false;
  return graph;
}

}  // namespace

HostProgram::HostProgram(Graph graph, Primitives& primitives, Picker& picker, const ProgramOptions& options)
    : program_(with_whole_gradients(std::move(graph)), nullptr, primitives, picker, options) {
  for (const ParameterRequest& request : program_.parameters())
    parameters_.push_back({.id = ParameterId{static_cast<std::uint32_t>(parameters_.size())},
                           .name = request.name,
                           .value = tensor(request.desc),
                           .gradient = options.mode == Mode::training ? tensor(request.desc) : Tensor(),
                           .master = std::nullopt,
                           .flattened = request.flattened});
  for (const GraphState& state : program_.states()) states_.push_back(tensor(desc_of(state)));
  reset_states();
  program_.bind(parameters_, states_, memory_.emplace_back(Buffer::host(program_.buffer_plan().bytes)).data());
}

Tensor HostProgram::tensor(const TensorDesc& desc) {
  return {desc, memory_.emplace_back(Buffer::host(desc.bytes())).data()};
}

void HostProgram::reset_states() {
  for (std::size_t i = 0; i < states_.size(); ++i) set_initial(program_.states()[i], states_[i]);
}

void set_initial(const GraphState& state, const Tensor& tensor) {
  if (state.dtype == DType::float32)
    std::ranges::fill(tensor.as<float>(), state.initial);
  else
    std::fill_n(tensor.data(), tensor.desc().bytes(), std::byte{0});
}

}  // namespace ronda
