#include <ronda/core/error.hpp>
#include <ronda/layers/graph/lowering.hpp>
#include <ronda/layers/graph/plan.hpp>
#include <ronda/layers/widened.hpp>

#include <algorithm>
#include <utility>

namespace ronda::graph {
namespace {

/// One buffer each for a step's output, for what it keeps for backward, and for scratch.
void add_step_buffers(Plan& plan) {
  plan.output_of.resize(plan.lowered.values.size());
  for (const Step& step : plan.lowered.steps) {
    const OperationPlan& needs = step.operation->plan();
    plan.output_of[step.output] = plan.memory.add(step.name + " output", needs.output.bytes());
    plan.kept_of.push_back(plan.memory.add(step.name + " kept", needs.pass_bytes));
    plan.between_of.push_back(plan.memory.add(step.name + " between", needs.between_bytes));
    plan.scratch_of.push_back(plan.memory.add(step.name + " scratch", needs.scratch_bytes, true));
  }
}

/// Marks a value as in use at `time`. Inputs of the graph are in the caller's memory and have no buffer.
void use_value(Plan& plan, std::size_t value, std::uint32_t time) {
  const std::size_t base = plan.lowered.values[value].base;
  if (!plan.lowered.values[base].input) plan.memory.extend_use(plan.output_of[base], time);
}

/// Marks all that forward and the loss use.
void use_in_forward(Plan& plan) {
  std::uint32_t time = 0;
  for (std::size_t i = 0; i < plan.lowered.steps.size(); ++i, ++time) {
    const Step& step = plan.lowered.steps[i];
    use_value(plan, step.output, time);
    for (const std::size_t input : step.inputs) use_value(plan, input, time);
    plan.memory.extend_use(plan.kept_of[i], time);
    plan.memory.use_once(plan.scratch_of[i], time);
  }
  use_value(plan, plan.lowered.output, plan.loss_time());
  for (const std::size_t value : plan.lowered.passed) use_value(plan, value, plan.loss_time());
  plan.memory.extend_use(plan.loss_scratch, plan.loss_time());
}

/// Marks the values and kept buffers of forward that each call of backward reads.
void use_in_backward(Plan& plan) {
  std::uint32_t time = plan.loss_time() + 1;
  for (const GradientCall& call : plan.backward.calls) {
    if (const auto* backward = std::get_if<BackwardCall>(&call)) {
      const Step& step = plan.lowered.steps[backward->step];
      const OperationPlan& needs = step.operation->plan();
      if (needs.backward_reads_output && backward->half != Half::second) use_value(plan, step.output, time);
      if (needs.backward_reads_inputs)
        for (const std::size_t input : step.inputs) use_value(plan, input, time);
      plan.memory.extend_use(plan.kept_of[backward->step], time);
      plan.memory.extend_use(plan.between_of[backward->step], time);
      plan.memory.use_once(plan.scratch_of[backward->step], time);
    }
    if (!std::holds_alternative<ReadyCall>(call)) ++time;  // a ReadyCall takes no time: it only notifies
  }
}

/// Whether an operation in place, such as an addition, may write into its first input. Two inputs are read element by
/// element, so they may be equal. Of more inputs the first is overwritten before the third is read: then it must occur
/// once.
bool first_may_be_overwritten(const std::vector<std::size_t>& buffers) {
  return buffers.size() <= 2 || std::ranges::count(buffers, buffers.front()) == 1;
}

/// Lets operations write into their first input, if they can and nothing reads it afterwards. The caller's inputs must
/// not be overwritten.
void work_in_place(Plan& plan) {
  const auto& values = plan.lowered.values;
  for (const Step& step : plan.lowered.steps) {
    if (!step.operation->plan().in_place || values[values[step.inputs.front()].base].input) continue;
    std::vector<std::size_t> bases;
    for (const std::size_t input : step.inputs) bases.push_back(values[input].base);
    if (first_may_be_overwritten(bases))
      plan.memory.share_if_possible(plan.output_of[bases.front()], plan.output_of[step.output]);
  }
  for (const GradientCall& call : plan.backward.calls)
    if (const auto* sum = std::get_if<SumCall>(&call); sum != nullptr && sum->add->plan().in_place)
      if (first_may_be_overwritten(sum->parts)) plan.memory.share_if_possible(sum->parts.front(), sum->sum);
}

/// The processor's losses compute in float32.
std::unique_ptr<LossOperation> make_loss(const Loss& loss, const TensorDesc& outputs, Primitives& primitives) {
  const bool as_it_is = !primitives.on_processor() || outputs == widened(outputs);
  std::unique_ptr<LossOperation> operation = loss.make(as_it_is ? outputs : widened(outputs), primitives);
  if (!operation)
    throw LogicError("the loss's make returned no operation: it returns one for the outputs that it takes");
  return as_it_is ? std::move(operation) : widened(std::move(operation), outputs);
}

}  // namespace

Plan make_plan(Graph graph, const Loss* loss, Primitives& primitives, Picker& picker, const ProgramOptions& options) {
  Plan plan;
  fuse(graph);
  plan.lowered = lower(graph, primitives, picker, options);
  const TensorDesc& output = plan.lowered.values[plan.lowered.output].desc;
  if (loss != nullptr) plan.loss = make_loss(*loss, output, primitives);
  plan.loss_scratch = plan.memory.add("loss scratch", plan.loss ? plan.loss->scratch_bytes() : 0, true);
  add_step_buffers(plan);
  use_in_forward(plan);
  if (options.mode == Mode::training) {
    plan.backward = plan_backward(plan.lowered, graph.inputs.size(), primitives, picker, plan.memory, plan.loss_time());
    use_in_backward(plan);
  } else if (plan.loss) {  // a loss always writes a gradient, also in evaluation
    plan.backward.output_gradient = plan.memory.add("loss gradient", output.bytes());
    plan.memory.extend_use(plan.backward.output_gradient, plan.loss_time());
  }
  work_in_place(plan);
  plan.buffers = place_buffers(plan.memory.requests());
  plan.graph = std::move(graph);
  return plan;
}

}  // namespace ronda::graph
