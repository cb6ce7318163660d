#include <ronda/layers/graph/fusion.hpp>
#include <ronda/layers/graph/plan.hpp>

#include <algorithm>
#include <utility>

namespace ronda::graph {
namespace {

void add_step_buffers(Plan& plan) {
  plan.output_of.resize(plan.lowered.places.size());
  for (const Step& step : plan.lowered.steps) {
    const OperationPlan& needs = step.operation->plan();
    plan.output_of[step.output] = plan.memory.add(step.name + " output", needs.output.bytes());
    plan.kept_of.push_back(plan.memory.add(step.name + " kept", needs.pass_bytes));
    plan.scratch_of.push_back(plan.memory.add(step.name + " scratch", needs.scratch_bytes, true));
  }
}

/// The values of the graph's inputs are the caller's.
void use_value(Plan& plan, std::size_t place, std::uint32_t time) {
  const std::size_t base = plan.lowered.places[place].base;
  if (!plan.lowered.places[base].input) plan.memory.use(plan.output_of[base], time);
}

void use_in_forward(Plan& plan) {
  std::uint32_t time = 0;
  for (std::size_t i = 0; i < plan.lowered.steps.size(); ++i, ++time) {
    const Step& step = plan.lowered.steps[i];
    use_value(plan, step.output, time);
    for (const std::size_t input : step.inputs) use_value(plan, input, time);
    plan.memory.use(plan.kept_of[i], time);
    plan.memory.use_alone(plan.scratch_of[i], time);
  }
  use_value(plan, plan.lowered.output, time);
  plan.memory.use(plan.loss_scratch, time);
}

/// What backward reads of forward.
void use_in_backward(Plan& plan, std::uint32_t first) {
  std::uint32_t time = first;
  for (const GradientCall& call : plan.backward.calls) {
    if (const auto* backward = std::get_if<BackwardCall>(&call)) {
      const Step& step = plan.lowered.steps[backward->step];
      const OperationPlan& needs = step.operation->plan();
      if (needs.backward_reads_output) use_value(plan, step.output, time);
      if (needs.backward_reads_inputs)
        for (const std::size_t input : step.inputs) use_value(plan, input, time);
      plan.memory.use(plan.kept_of[backward->step], time);
      plan.memory.use_alone(plan.scratch_of[backward->step], time);
    }
    if (!std::holds_alternative<ReadyCall>(call)) ++time;
  }
}

/// Whether the first of `buffers` may be overwritten while the others are read.
bool first_is_read_once(const std::vector<std::size_t>& buffers) {
  return buffers.size() <= 2 || std::ranges::count(buffers, buffers.front()) == 1;
}

/// Operations that may work in place do, where nobody reads their first input afterwards.
void work_in_place(Plan& plan) {
  const auto& places = plan.lowered.places;
  for (const Step& step : plan.lowered.steps) {
    if (!step.operation->plan().in_place || places[places[step.inputs.front()].base].input) continue;
    std::vector<std::size_t> bases;
    for (const std::size_t input : step.inputs) bases.push_back(places[input].base);
    if (first_is_read_once(bases)) plan.memory.share(plan.output_of[bases.front()], plan.output_of[step.output]);
  }
  for (const GradientCall& call : plan.backward.calls)
    if (const auto* sum = std::get_if<SumCall>(&call); sum != nullptr && sum->add->plan().in_place)
      if (first_is_read_once(sum->parts)) plan.memory.share(sum->parts.front(), sum->sum);
}

}  // namespace

Plan make_plan(Graph graph, const Loss* loss, Primitives& primitives, Picker& picker, Mode mode, bool input_gradient) {
  Plan plan;
  fuse(graph);
  plan.lowered = lower(graph, primitives, picker, mode, input_gradient);
  if (loss != nullptr) plan.loss = loss->make(plan.lowered.places[plan.lowered.output].desc, primitives);
  plan.loss_scratch = plan.memory.add("loss scratch", plan.loss ? plan.loss->scratch_bytes() : 0, true);
  add_step_buffers(plan);
  use_in_forward(plan);
  const auto loss_time = static_cast<std::uint32_t>(plan.lowered.steps.size());
  if (mode == Mode::training) {
    plan.backward = plan_backward(plan.lowered, graph.inputs.size(), primitives, picker, plan.memory, loss_time);
    use_in_backward(plan, loss_time + 1);
  } else if (plan.loss) {
    plan.backward.output_gradient =
        plan.memory.add("loss gradient", plan.lowered.places[plan.lowered.output].desc.bytes());
    plan.memory.use(plan.backward.output_gradient, loss_time);
  }
  work_in_place(plan);
  plan.places = place_buffers(plan.memory.requests());
  plan.graph = std::move(graph);
  return plan;
}

}  // namespace ronda::graph
