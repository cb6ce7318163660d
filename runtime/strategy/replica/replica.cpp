#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/core/random.hpp>
#include <ronda/layers/program.hpp>
#include <ronda/runtime/strategy/replica/arena_memory.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>
#include <ronda/layers/processor_alone.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace ronda {
namespace {

/// An exact power of two near 1/samples: the gradient's size stays near a mean's, and no bit is lost by the scaling.
float power_of_two_near_inverse(std::size_t samples) {
  return std::ldexp(1.0F, -std::ilogb(static_cast<double>(samples > 0 ? samples : 1)));
}

Program planned(const Layer& model, const Loss& loss, const ComputeDevice& device, Primitives& primitives,
                Picker& picker, std::span<const Field> fields, std::size_t rows) {
  Program program(build_graph(model, fields, rows), &loss, primitives, picker);
  if (device.context->device().kind == DeviceKind::cpu) return program;
  const std::string& operation = program.first_cpu_only_operation();
  if (operation.empty() && loss.runs_on_any_device()) return program;
  throw processor_alone(operation.empty() ? "the loss of this model" : "the operation " + operation + " of this model");
}

TensorDesc exact(const TensorDesc& desc) { return {desc.shape, DType::float32, desc.layout}; }

}  // namespace

Replica::Replica(const Layer& model, const Loss& loss, ComputeDevice device, std::shared_ptr<Primitives> primitives,
                 Picker& picker, std::span<const Field> fields, std::size_t rows, std::size_t samples,
                 std::uint64_t seed, std::optional<DType> reduce_dtype)
    : device_(std::move(device)),
      primitives_(std::move(primitives)),
      seed_(seed),
      loss_scale_(power_of_two_near_inverse(samples)),
      program_(planned(model, loss, device_, *primitives_, picker, fields, rows)),
      plan_(program_, *primitives_, reduce_dtype),
      inputs_(program_.inputs().size()) {}

Replica::Replica(Program program, ComputeDevice device, std::shared_ptr<Primitives> primitives, std::size_t samples,
                 std::uint64_t seed)
    : device_(std::move(device)),
      primitives_(std::move(primitives)),
      seed_(seed),
      loss_scale_(power_of_two_near_inverse(samples)),
      program_(std::move(program)),
      plan_(program_, *primitives_),
      inputs_(program_.inputs().size()) {}

// ---- memory ---------------------------------------------------------------------------------------------------------

void Replica::take_memory(std::size_t states, const std::optional<Range>& elements, bool keeps_average) {
  kept_ = elements;
  const std::size_t exact_bytes = plan_.elements() * sizeof(float);
  for (std::size_t s = 0; s < states; ++s)
    states_.push_back(allocate_arena(place_behind(place_of_state(s), kept().begin * sizeof(float)),
                                     kept().size() * sizeof(float), *device_.context));
  if (keeps_average) average_ = allocate_arena(ArenaPlace::average, exact_bytes, *device_.context);
  activations_ = device_.context->allocate(program_.buffer_plan().bytes);
  for (const GraphState& state : program_.states())
    layer_states_.push_back(device_.context->allocate(desc_of(state).bytes()));
  if (plan_.mixed()) masters_ = allocate_arena(ArenaPlace::masters, exact_bytes, *device_.context);
  if (plan_.dtype == DType::float16) scale_ = device_.context->allocate(sizeof(LossScale));
}

void Replica::take_arenas(Buffer values, Buffer gradients, Buffer lists, Buffer sums) {
  values_ = std::move(values);
  gradients_ = std::move(gradients);
  sums_ = std::move(sums);
  lists_ = std::move(lists);
  ArenaPlan places;
  touched_.reserve(plan_.tables().size());
  for (const GradientSlot& table : plan_.tables()) {
    const std::size_t length = TouchedRows::length(plan_.rows(table));
    auto* const list = reinterpret_cast<std::int32_t*>(lists_.data() + places.reserve(length * sizeof(std::int32_t)));
    touched_.emplace_back(std::span(list, length));
  }
}

void Replica::share_values(Buffer average, const Range& part) {
  part_ = part;
  average_ = std::move(average);
}

ArenaRange Replica::dense_arena() const noexcept {
  return {reinterpret_cast<float*>(trained().data()), reinterpret_cast<const float*>(reduced().data()),
          plan_.dense_elements()};
}

/// Gradients of a half type are not read by this range: see Updater::apply.
ArenaRange Replica::kept_arena() const noexcept {
  ArenaRange mine = dense_arena();
  mine.values += kept().begin;
  if (plan_.reduce_dtype == DType::float32) mine.gradients += kept().begin;
  mine.count = kept().size();
  return mine;
}

ArenaRange Replica::sparse_arena() const noexcept {
  const std::size_t first = plan_.dense_elements();
  return {reinterpret_cast<float*>(trained().data()) + first, reinterpret_cast<const float*>(gradients_.data()) + first,
          plan_.elements() - first};
}

LayerArenas Replica::layer_arenas() const noexcept {
  return {.gradients = reduced().data(),
          .dtype = plan_.reduce_dtype,
          .values = plan_.mixed() ? values_.data() : nullptr,
          .layer_dtype = plan_.dtype};
}

void Replica::bind() {
  parameters_.resize(plan_.requests.size());
  for (const auto& slot : plan_.slots) {
    const ParameterRequest& request = plan_.requests[index_of(slot.id)];
    std::optional<Tensor> master;
    if (plan_.mixed())
      master.emplace(exact(request.desc), masters_.data() + slot.offset / size_of(plan_.dtype) * sizeof(float),
                     masters_.device());
    parameters_[index_of(slot.id)] = {
        .id = slot.id,
        .name = slot.name,
        .value = Tensor(request.desc, values_.data() + slot.offset, values_.device()),
        .gradient = Tensor(request.desc, gradients_.data() + slot.offset, gradients_.device()),
        .master = master,
        .flattened = request.flattened};
  }
  for (std::size_t i = 0; i < touched_.size(); ++i) parameters_[index_of(plan_.tables()[i].id)].touched = &touched_[i];
  std::vector<Tensor> states;
  for (std::size_t i = 0; i < layer_states_.size(); ++i) {
    const GraphState& state = program_.states()[i];
    states.emplace_back(desc_of(state), layer_states_[i].data(), layer_states_[i].device());
    set_initial(state, states.back());
  }
  program_.bind(parameters_, states, activations_.data(), activations_.device());
}

OptimizerBindings Replica::bindings(const std::function<ParameterGroup(std::string_view)>& group_of) const {
  OptimizerBindings bindings{.values = reinterpret_cast<float*>(trained().data()),
                             .states = states(),
                             .segments = {},
                             .groups = {},
                             .device = values_.device(),
                             .kept = kept_};
  for (const auto& slot : plan_.slots) {
    const ParameterRequest& request = plan_.requests[index_of(slot.id)];
    bindings.groups.push_back(group_of ? group_of(slot.name) : ParameterGroup{});
    bindings.segments.push_back({slot.name, exact(request.desc), slot.offset / size_of(plan_.dtype),
                                 bindings.groups.size() - 1, request.flattened,
                                 parameters_[index_of(slot.id)].touched});
  }
  return bindings;
}

std::vector<float*> Replica::states() const {
  std::vector<float*> arenas;
  for (const Buffer& state : states_) arenas.push_back(reinterpret_cast<float*>(state.data()));
  return arenas;
}

/// By the host: where it lies, or in one piece that is copied there.
void Replica::initialize(Initializer usual, std::uint64_t seed) {
  const bool here = trained().device().kind == DeviceKind::cpu;
  const Buffer staging = here ? Buffer() : device_.context->allocate_staging(trained().bytes());
  auto* const drawn = reinterpret_cast<float*>(here ? trained().data() : staging.data());
  for (const auto& slot : plan_.slots) {
    const ParameterRequest& request = plan_.requests[index_of(slot.id)];
    Parameter parameter = parameters_[index_of(slot.id)];
    parameter.value = Tensor(exact(request.desc), drawn + slot.offset / size_of(plan_.dtype));
    ronda::initialize(parameter, request.initializer.value_or(usual), request.fan_in, request.fan_out, seed);
    if (request.zero_row) {
      const auto width = static_cast<std::size_t>(request.desc.shape[1]);
      std::ranges::fill(parameter.value.as<float>().subspan(static_cast<std::size_t>(*request.zero_row) * width, width),
                        0.0F);
    }
  }
  if (!here) device_.context->copy(drawn, trained().data(), trained().bytes(), stream());
  const LossScale first;
  if (more_scale() != nullptr) device_.context->copy(&first, more_scale(), sizeof first, stream());
  stream().synchronize();
}

void Replica::visit_parameters(StateVisitor& visitor) const {
  for (const auto& parameter : parameters_)
    visitor.visit({parameter.name, parameter.trained(), Scope::replicated, parameter.flattened});
}

void Replica::visit_average(StateVisitor& visitor) const {
  if (average_.bytes() == 0) return;
  for (const auto& slot : plan_.slots) {
    const Parameter& parameter = parameters_[index_of(slot.id)];
    std::byte* const place = average_.data() + slot.offset / size_of(plan_.dtype) * sizeof(float);
    visitor.visit({parameter.name + ".ema",
                   {parameter.trained().desc(), place, average_.device()},
                   Scope::replicated,
                   parameter.flattened});
  }
}

void Replica::visit_layer_states(StateVisitor& visitor) const {
  for (std::size_t i = 0; i < layer_states_.size(); ++i) {
    const GraphState& state = program_.states()[i];
    visitor.visit({state.name, {desc_of(state), layer_states_[i].data(), layer_states_[i].device()}, state.scope});
  }
}

void Replica::visit_states(StateVisitor& visitor) const {
  if (more_scale() != nullptr) {
    const auto number = [&](const char* name, std::size_t place) {
      visitor.visit(
          {name, {{Shape{1}, DType::float32, {}}, scale_.data() + place, scale_.device()}, Scope::replicated});
    };
    number("loss_scale", offsetof(LossScale, scale));
    number("loss_scale.good_steps", offsetof(LossScale, good_steps));
  }
  visit_layer_states(visitor);
}

// ---- computing ------------------------------------------------------------------------------------------------------

Pass Replica::pass(Mode mode, const Batch& batch, std::uint64_t step, StepControl* sums) const {
  return {.stream = stream(),
          .mode = mode,
          .step = step,
          .key = RngKey(seed_, Purpose::layer, step),
          .first_row = batch.first_row(),
          .weights = &batch.weights(),
          .loss_scale = loss_scale_,
          .more_scale = reinterpret_cast<const float*>(scale_.data()),
          .control = sums,
          .on_ready = {}};
}

const Tensor& Replica::forward(const Batch& batch, const Pass& pass) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) inputs_[i] = batch.field(program_.inputs()[i].field);
  return program_.forward(inputs_, pass);
}

void Replica::clear_sparse_gradients() {
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    const Tensor& gradient = parameters_[index_of(plan_.tables()[i].id)].gradient;
    const auto width = static_cast<std::size_t>(gradient.shape()[1]);
    for (const std::int32_t row : touched_[i].rows())
      std::fill_n(gradient.pointer<float>() + static_cast<std::size_t>(row) * width, width, 0.0F);
    touched_[i].clear();
  }
}

void Replica::compute(const Batch& batch, const Pass& pass, StepClock& clock) {
  static_cast<void>(forward(batch, pass));
  clock.lap(&StepTimes::forward);
  loss(batch, pass);
  backward(pass);
  clock.lap(&StepTimes::backward);
}

const Tensor& Replica::evaluate(const Batch& batch, const Pass& pass) {
  const Tensor& outputs = forward(batch, pass);
  loss(batch, pass);  // for its sums
  return outputs;
}

void Replica::with_states_kept(FunctionRef<void()> body) {
  std::vector<std::vector<std::byte>> kept;  // operations with states are the processor's
  for (const Buffer& state : layer_states_) kept.emplace_back(state.data(), state.data() + state.bytes());
  body();
  for (std::size_t i = 0; i < kept.size(); ++i) std::ranges::copy(kept[i], layer_states_[i].data());
}

void draw_uniform(const Tensor& tensor, std::uint64_t seed, const std::string& stream) {
  if (tensor.dtype() != DType::float32 || tensor.device().kind != DeviceKind::cpu) return;
  const RngKey key(seed, Purpose::layer, stream);
  std::uint64_t i = 0;
  for (float& number : tensor.as<float>()) number = key.uniform(i++);
}

std::vector<OperationCosts> Replica::measure(std::span<const Field> fields) {
  const auto rows = static_cast<std::size_t>(program_.input_desc(0).shape[0]);
  Batch samples(fields, rows);
  for (const GraphInput& input : program_.inputs()) draw_uniform(samples.field(input.field), seed_, input.field);
  draw_uniform(program_.output_gradient(), seed_, "gradient");
  const bool here = values_.device().kind == DeviceKind::cpu;
  std::optional<Batch> there;
  if (!here) there.emplace(fields, rows, *device_.context).copy_from(samples, *device_.context, stream());
  const Batch& batch = here ? samples : *there;
  for (std::size_t i = 0; i < inputs_.size(); ++i) inputs_[i] = batch.field(program_.inputs()[i].field);
  std::vector<OperationCosts> costs;
  with_states_kept([&] { costs = program_.measure(inputs_, pass(Mode::training, batch, 1, nullptr)); });
  return costs;
}

void Replica::check(const Batch& batch) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    require_planned(program_.input_desc(i), batch.field(program_.inputs()[i].field).desc());
}

/// Of a batch with fewer rows than planned, layers would read what is not there; with more, only the first would count.
void require_planned(const TensorDesc& planned, const TensorDesc& found) {
  if (found == planned) return;
  throw InputError("the model was planned for inputs " + planned.text() + ", the batch has " + found.text() +
                   (found.shape.without_batch() == planned.shape.without_batch()
                        ? "; BatchPlan::with_capacity gives smaller batches the rows that were planned"
                        : ""));
}

// ---- parameters -----------------------------------------------------------------------------------------------------

std::size_t elements_of(std::span<const Parameter> parameters) {
  std::size_t count = 0;
  for (const auto& parameter : parameters) count += static_cast<std::size_t>(parameter.value.desc().count());
  return count;
}

std::string hash_of(std::span<const Parameter> parameters, HostCopy& host) {
  Hash hash;
  for (const auto& parameter : parameters) {
    const std::vector<float> values = to_file(parameter, host.of(parameter.trained()));
    hash.add(parameter.name).add(std::as_bytes(std::span(values)));
  }
  return hash.text();
}

}  // namespace ronda
