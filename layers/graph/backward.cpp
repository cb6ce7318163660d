#include <ronda/core/error.hpp>
#include <ronda/layers/graph/backward.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace ronda::graph {
namespace {

class BackwardPlanner {
 public:
  BackwardPlanner(const Lowered& lowered, Primitives& primitives, Picker& picker, Memory& memory, std::uint32_t time)
      : lowered_(lowered),
        primitives_(primitives),
        picker_(picker),
        memory_(memory),
        time_(time),
        parts_(lowered.values.size()),
        uses_left_(lowered.parameters.size()),
        written_(lowered.parameters.size()) {
    for (const Step& step : lowered.steps)
      for (const ParameterId id : step.parameters) ++uses_left_[index_of(id)];
    shared_ = uses_left_;
  }

  Backward run(std::size_t inputs) {
    const std::size_t output = lowered_.values[lowered_.output].base;
    result_.output_gradient = memory_.add("loss gradient", lowered_.values[output].desc.bytes());
    memory_.extend_use(result_.output_gradient, time_);
    if (lowered_.values[output].gradient) parts_[output].push_back(result_.output_gradient);
    for (const std::size_t value : lowered_.passed) receive(lowered_.values[value].base);
    ++time_;
    for (std::size_t i = lowered_.steps.size(); i-- > 0;) plan(i);
    result_.input_gradients.resize(inputs);
    for (std::size_t value = 0; value < lowered_.values.size(); ++value)
      if (const auto input = lowered_.values[value].input; input && !parts_[value].empty())
        result_.input_gradients[*input] = gradient_of(value, "input");
    plan_second_halves();
    for (const auto& gradient : result_.input_gradients)
      if (gradient) memory_.extend_use(*gradient, time_);
    return std::move(result_);
  }

 private:
  /// The gradient of a value that is given on comes from there, in the loss's time.
  void receive(std::size_t base) {
    const std::size_t gradient = memory_.add("passed gradient", lowered_.values[base].desc.bytes());
    memory_.extend_use(gradient, time_);
    result_.passed_gradients.push_back(gradient);
    if (lowered_.values[base].gradient) parts_[base].push_back(gradient);
  }

  void plan(std::size_t index) {
    const Step& step = lowered_.steps[index];
    const std::size_t output = lowered_.values[step.output].base;
    if (parts_[output].empty()) return;  // the loss does not depend on a parameter through it
    const std::size_t gradient = gradient_of(output, step.name);
    if (step.operation->plan().gradients == InputGradients::output) {
      for (const std::size_t input : step.inputs) give(input, gradient);
      return;
    }
    BackwardCall call{.step = index,
                      .output_gradient = gradient,
                      .half = step.operation->plan().in_halves ? Half::first : Half::both};
    memory_.extend_use(gradient, time_);
    write_input_gradients(call);
    write_parameter_gradients(call);
    ++time_;
    const auto& planned = std::get<BackwardCall>(result_.calls.emplace_back(std::move(call)));
    if (planned.half == Half::first) halved_.push_back(planned);
    if (planned.ready_calls_follow) complete_parameters(step, std::vector(planned.parameter_gradients));
  }

  /// When all inputs' gradients are done, so that these can be sent meanwhile.
  void plan_second_halves() {
    result_.second_half = result_.calls.size();
    for (BackwardCall& call : halved_) {
      call.half = Half::second;
      const bool reads = lowered_.steps[call.step].operation->plan().second_half_reads_gradient;
      if (reads) memory_.extend_use(call.output_gradient, time_);
      ++time_;
      result_.calls.emplace_back(std::move(call));
    }
  }

  // ---- values -------------------------------------------------------------------------------------------------------

  void give(std::size_t input, std::size_t gradient) {
    const std::size_t base = lowered_.values[input].base;
    if (lowered_.values[base].gradient) parts_[base].push_back(gradient);
  }

  void write_input_gradients(BackwardCall& call) {
    const Step& step = lowered_.steps[call.step];
    const bool common = step.operation->plan().gradients == InputGradients::common;
    call.input_gradients.resize(step.inputs.size());
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      const DeviceValue& input = lowered_.values[step.inputs[i]];
      if (!lowered_.values[input.base].gradient && !common) continue;
      auto& gradient = call.input_gradients[i];
      if (common && i > 0) {
        gradient = call.input_gradients.front();
      } else {
        gradient = memory_.add(step.name + " input gradient", input.desc.bytes());
        memory_.extend_use(*gradient, time_);
      }
      give(step.inputs[i], *gradient);
    }
  }

  /// The buffer with the complete gradient of the value `base`: the sum over its readers, which have all run.
  std::size_t gradient_of(std::size_t base, const std::string& owner) {
    auto& parts = parts_[base];
    if (parts.size() == 1) return parts.front();
    SumCall call{.add = make_add(lowered_.values[base].desc, parts.size()), .parts = parts};
    call.sum = memory_.add(owner + " gradient", lowered_.values[base].desc.bytes());
    memory_.extend_use(call.sum, time_);
    for (const std::size_t part : parts) memory_.extend_use(part, time_);
    ++time_;
    parts = {call.sum};
    result_.calls.emplace_back(std::move(call));
    return parts.front();
  }

  /// Adds tensors element by element as they are stored, whatever their layout.
  std::unique_ptr<Operation> make_add(const TensorDesc& desc, std::size_t count) {
    const std::vector<TensorDesc> inputs(count, TensorDesc{Shape{desc.padded_count()}, desc.dtype, {}});
    auto add = primitives_.make(AddSpec{}, inputs, {picker_, Mode::training, false});
    if (add == nullptr) throw InputError(primitives_.name() + " cannot add gradients of a value with several readers");
    return add;
  }

  // ---- parameters ---------------------------------------------------------------------------------------------------

  /// The first step writes a parameter's gradient where it belongs. Later steps write into buffers, which are added.
  /// To the gradient of a sparse table each step adds by itself.
  void write_parameter_gradients(BackwardCall& call) {
    const Step& step = lowered_.steps[call.step];
    call.parameter_gradients.resize(step.parameters.size());
    for (std::size_t i = 0; i < step.parameters.size(); ++i) {
      const std::size_t id = index_of(step.parameters[i]);
      call.ready_calls_follow = call.ready_calls_follow || shared_[id] > 1;
      if (!written_[id] || lowered_.parameters[id].sparse) {
        written_[id] = true;
        continue;
      }
      auto& gradient = call.parameter_gradients[i];
      gradient =
          memory_.add(step.name + " gradient of " + lowered_.parameters[id].name, lowered_.parameters[id].desc.bytes());
      memory_.extend_use(*gradient, time_);
    }
  }

  /// @param gradients  buffers, of the gradients that are not written where they belong
  void complete_parameters(const Step& step, const std::vector<std::optional<std::size_t>>& gradients) {
    for (std::size_t i = 0; i < step.parameters.size(); ++i) {
      const ParameterId id = step.parameters[i];
      if (gradients[i]) {
        result_.calls.emplace_back(
            ParameterSumCall{make_add(lowered_.parameters[index_of(id)].desc, 2), id, *gradients[i]});
        memory_.extend_use(*gradients[i], time_++);
      }
      if (--uses_left_[index_of(id)] == 0) result_.calls.emplace_back(ReadyCall{id});
    }
  }

  const Lowered& lowered_;
  Primitives& primitives_;
  Picker& picker_;
  Memory& memory_;
  std::uint32_t time_;
  std::vector<std::vector<std::size_t>> parts_;  ///< of each value: the gradients from its readers
  std::vector<std::size_t> uses_left_, shared_;  ///< of each parameter: steps that read it
  std::vector<bool> written_;                    ///< of each parameter: whether a step writes its gradient
  std::vector<BackwardCall> halved_;             ///< whose second half is to come
  Backward result_;
};

}  // namespace

Backward plan_backward(const Lowered& lowered, std::size_t inputs, Primitives& primitives, Picker& picker,
                       Memory& memory, std::uint32_t time) {
  return BackwardPlanner(lowered, primitives, picker, memory, time).run(inputs);
}

}  // namespace ronda::graph
