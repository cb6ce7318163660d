// How a mirrored strategy is planned and takes its memory; mirrored_strategy.cpp has its steps.
#include <ronda/core/counted.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/runtime/strategy/mirrored_strategy.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace ronda {
namespace {

/// An exact power of two near 1/samples: the gradient's size stays near a mean's, and no bit is lost by the scaling.
float power_of_two_near_inverse(std::size_t samples) {
  return std::ldexp(1.0F, -std::ilogb(static_cast<double>(samples > 0 ? samples : 1)));
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

}  // namespace

MirroredOptions MirroredOptions::for_data(const Dataset& data, const BatchPlan& plan) {
  MirroredOptions options;
  options.fields.assign(data.fields().begin(), data.fields().end());
  options.batch_capacity = plan.capacity();
  options.global_batch = plan.global_batch();
  options.micro_batches = plan.micro_batches();
  return options;
}

Shard shard_of(const Communicator& communicator) noexcept {
  return {static_cast<std::size_t>(communicator.rank()), static_cast<std::size_t>(communicator.size())};
}

MirroredStrategy::MirroredStrategy(Communicator communicator, Layer& model, Loss& loss,
                                   std::unique_ptr<Optimizer> optimizer, Schedule schedule, MirroredOptions options,
                                   EventSink* sink)
    : communicator_(std::move(communicator)),
      sink_(sink != nullptr ? *sink : silence_),
      model_(model),
      loss_(loss),
      optimizer_(std::move(optimizer)),
      schedule_(schedule),
      options_(std::move(options)),
      compute_(options_.device.context ? options_.device : ComputeDevice::on(make_cpu_context(options_.threads))),
      primitives_(options_.primitives ? options_.primitives : make_onednn_primitives(options_.threads)),
      picker_(communicator_, options_.picks, options_.plan_name, sink_),
      planner_(*primitives_, picker_, Mode::training),
      loss_scale_(power_of_two_near_inverse(options_.global_batch)) {
  use_threads(options_.threads);
  agree(communicator_, [&] { plan(); });
  check_memory();
  agree(communicator_, [&] { take_memory(); });
  take_arenas();
  if (device_) take_data();
  if (!device_) memory_.compression = gradients_->memory();  // a device's is not what the host keeps beside it
  check_memory();
  require_equal(communicator_, "the plan", joined(plan_lines_));
  agree(communicator_, [&] {
    bind();
    set_initial_values();
  });
  broadcast_parameters();
  for (const auto& line : communicator_.devices()) sink_.on_detail(line);
  for (const auto& note : communicator_.take_notes()) sink_.on_warning(note);
  for (const auto& line : plan_lines_) sink_.on_detail(line);
  for (const auto& request : planner_.buffers())
    if (request.bytes > 0) sink_.on_detail("memory for " + request.owner + ": " + human_bytes(request.bytes));
  sink_.on_detail(memory_.text());
}

void MirroredStrategy::check_memory() {
  agree(communicator_,
        [&] { check_memory_limit(memory_, options_.memory_limit, options_.batch_capacity, options_.micro_batches); });
}

void MirroredStrategy::plan() {
  options_.steps_in_flight = std::max<std::size_t>(options_.steps_in_flight, 1);
  if (compute_.context->device().kind != DeviceKind::cpu) {
    if (!options_.primitives) throw LogicError("a strategy on a GPU needs the GPU's primitives");
    if (!model_.runs_on_any_device() || !loss_.runs_on_any_device())
      throw InputError("a layer or the loss of this model computes on the processor alone; use --device cpu");
  }
  const auto field = std::ranges::find(options_.fields, "input", &Field::name);
  if (field == options_.fields.end()) throw InputError("the data has no field 'input'");
  if (field->dtype != DType::float32)
    throw InputError("the model's input is float32, not " + std::string(name_of(field->dtype)));
  if (options_.batch_capacity == 0) throw InputError("a batch has at least one sample");
  std::vector<std::int64_t> extents{static_cast<std::int64_t>(options_.batch_capacity)};
  extents.insert(extents.end(), field->shape.begin(), field->shape.end());
  input_ = {Shape(extents), DType::float32, {}};
  dtype_ = primitives_->dtype();
  if (mixed() && compute_.context->device().kind == DeviceKind::cpu)
    throw InputError("half types are for GPUs in this version; use float32, or --device cuda");
  if (mixed()) cast_.emplace(dtype_);
  const TensorDesc outputs = planner_.plan(model_, cast_ ? planner_.plan(*cast_, input_) : input_);
  planner_.plan(loss_, outputs);
  plan_arena();
  buffers_ = place_buffers(planner_.buffers());
  const std::size_t exact_bytes = elements() * sizeof(float);
  memory_ = {.parameters = arena_bytes_ + (mixed() ? exact_bytes : 0),
             .gradients = arena_bytes_ + (options_.micro_batches > 1 ? exact_bytes : 0),
             .optimizer = exact_bytes * optimizer_->states().size(),
             .activations = buffers_.pass_bytes + buffers_.gradient_bytes,
             .workspace = buffers_.scratch_bytes};
  if (compute_.context->device().kind != DeviceKind::cpu)
    memory_.activations += DeviceStep::bytes_of_batches(options_.fields, options_.batch_capacity,
                                                        options_.steps_in_flight * options_.micro_batches);
}

/// Gradients in the order in which backward finishes them: the last layer's first. Parameters and optimizer states are
/// the same elements of their arenas.
void MirroredStrategy::plan_arena() {
  const auto requests = planner_.parameters();
  if (requests.empty()) throw InputError("the model has no parameters to train");
  ArenaPlan arena;
  for (std::size_t i = requests.size(); i-- > 0;) {
    if (requests[i].desc.dtype != dtype_)
      throw LogicError("parameter " + requests[i].name + " is " + requests[i].desc.text() + "; this model's are " +
                       std::string(name_of(dtype_)));
    const std::size_t bytes = requests[i].desc.bytes();
    slots_.push_back({ParameterId{static_cast<std::uint32_t>(i)}, requests[i].name, arena.reserve(bytes), bytes});
  }
  arena_bytes_ = arena.bytes();
  plan_lines_.push_back("primitives " + primitives_->name());
  plan_lines_.insert(plan_lines_.end(), planner_.notes().begin(), planner_.notes().end());
  for (const auto& slot : slots_)
    plan_lines_.push_back(slot.name + ": " + requests[index_of(slot.id)].desc.text() + " at " +
                          std::to_string(slot.offset));
}

void MirroredStrategy::take_memory() {
  states_ = compute_.context->allocate(memory_.optimizer);
  activations_ = compute_.context->allocate(buffers_.bytes);
  evaluation_ = std::make_unique<ControlBlock>(compute_);
  if (compute_.context->device().kind == DeviceKind::cpu) return;
  device_ = std::make_unique<DeviceStep>(compute_, communicator_, options_.fields, options_.batch_capacity,
                                         options_.steps_in_flight, options_.micro_batches);
  values_ = compute_.context->allocate(arena_bytes_);
  if (mixed()) masters_ = compute_.context->allocate(elements() * sizeof(float));
  if (dtype_ == DType::float16) scale_ = compute_.context->allocate(sizeof(LossScale));
}

/// Where values and gradients lie decides how they are reduced and updated. Collective.
void MirroredStrategy::take_arenas() {
  const FusionOptions fusion = device_ ? take_device_arenas() : take_host_arenas();
  gradients_ = std::make_unique<FusionBuffer>(communicator_, slots_, gradient_arena_, fusion);
  control_ = std::make_unique<ControlBlock>(compute_, gradients_->control());
  for (const auto& line : gradients_->describe()) plan_lines_.push_back(line);
  if (node_update_) plan_lines_.push_back("update by parts in the node's memory");
  if (device_ && !(options_.record_steps && gradients_->moves_alone())) device_->record_nothing();
}

FusionOptions MirroredStrategy::take_device_arenas() {
  agree(communicator_, [&] { require_fitting(options_.fusion.algorithm, compute_.context->device().kind); });
  if (communicator_.devices().empty()) communicator_.use_device(compute_.context, options_.fusion.algorithm);
  gradient_arena_ = communicator_.allocate(arena_bytes_, Memory::on_device);
  FusionOptions fusion = options_.fusion;
  fusion.dtype = dtype_;
  return fusion;
}

/// Each dataset on all ranks' devices, or on none. Collective.
void MirroredStrategy::take_data() {
  const std::string mine = compute_.context->identity();
  const auto devices = communicator_.gather_texts(mine);
  const auto sharers = static_cast<std::size_t>(std::ranges::count(devices, mine));
  for (const Dataset* data : options_.device_data) {
    const auto reasons = communicator_.gather_texts(why_no_room_for(*data, sharers));
    const auto reason = std::ranges::find_if(reasons, [](const std::string& each) { return !each.empty(); });
    if (reason != reasons.end()) {
      sink_.on_note("data stays on the host: rank " + std::to_string(reason - reasons.begin()) + " has " + *reason);
      continue;
    }
    agree(communicator_, [&] { device_->keep(*data, options_.gather); });
    memory_.data += DeviceDataset::bytes_of(*data);
  }
}

/// Empty: there is room on this rank's device, which so many ranks share.
std::string MirroredStrategy::why_no_room_for(const Dataset& data, std::size_t sharers) {
  const std::size_t bytes = DeviceDataset::bytes_of(data);
  if (bytes == 0) return "a dataset that does not say how it is stored";
  const std::size_t free = compute_.context->free_bytes() / sharers;
  const auto most = static_cast<std::size_t>(static_cast<double>(free) * options_.device_data_share);
  if (bytes > most) return human_bytes(bytes) + " of it, and " + human_bytes(free) + " free on its device";
  if (options_.memory_limit > 0 && memory_.total() + bytes > options_.memory_limit)
    return human_bytes(bytes) + " of it, which is beyond the limit beside the model";
  return {};
}

void MirroredStrategy::forget_data() noexcept {
  options_.device_data.clear();
  memory_.data = 0;
  if (device_) device_->forget_data();
}

FusionOptions MirroredStrategy::take_host_arenas() {
  gradient_arena_ = communicator_.allocate(arena_bytes_, Memory::node_shared);
  FusionOptions fusion = options_.fusion;
  const bool in_memory =
      fusion.algorithm == AllreduceAlgorithm::automatic || fusion.algorithm == AllreduceAlgorithm::node;
  const bool by_parts = in_memory && fusion.compression == Compression::none && communicator_.size() > 1 &&
                        arena_bytes_ >= options_.node_update_bytes;
  if (by_parts) {
    const auto notes = communicator_.take_notes();
    for (const auto& note : notes) sink_.on_warning(note);
    values_ = communicator_.allocate(arena_bytes_, notes.empty() ? Memory::node_shared : Memory::per_rank);
    static_cast<void>(communicator_.take_notes());  // without room every rank updates everything: no loss of note
    node_update_ = NodeUpdate::make(communicator_, *optimizer_, values_, gradient_arena_, options_.threads);
  } else {
    values_ = Buffer::host(arena_bytes_);
  }
  fusion.late = node_update_ != nullptr;
  return fusion;
}

/// Tells everybody where his memory is.
void MirroredStrategy::bind() {
  const auto requests = planner_.parameters();
  parameters_.resize(requests.size());
  const std::size_t count = elements();
  OptimizerBindings bindings{.values = reinterpret_cast<float*>(trained().data()),
                             .states = {},
                             .segments = {},
                             .groups = {},
                             .device = values_.device()};
  for (std::size_t s = 0; s < optimizer_->states().size(); ++s)
    bindings.states.push_back(reinterpret_cast<float*>(states_.data()) + s * count);
  for (const auto& slot : slots_) {
    const ParameterRequest& request = requests[index_of(slot.id)];
    const std::size_t element = slot.offset / size_of(dtype_);
    const TensorDesc exact{request.desc.shape, DType::float32, request.desc.layout};
    parameters_[index_of(slot.id)] = {
        .id = slot.id,
        .name = slot.name,
        .value = Tensor(request.desc, values_.data() + slot.offset, values_.device()),
        .gradient = Tensor(request.desc, gradient_arena_.data() + slot.offset, gradient_arena_.device()),
        .master = mixed() ? std::optional(Tensor(exact, bindings.values + element, masters_.device())) : std::nullopt,
        .flattened = request.flattened};
    bindings.groups.push_back(options_.group_of ? options_.group_of(slot.name) : ParameterGroup{});
    bindings.segments.push_back({slot.name, exact, element, bindings.groups.size() - 1, request.flattened});
  }
  if (device_) prepare_device_step(bindings);
  optimizer_->bind(std::move(bindings));
  const Bindings memory(parameters_, buffers_.offsets, activations_.data(), activations_.device());
  if (cast_) cast_->bind(memory);
  model_.bind(memory);
  loss_.bind(memory);
  if (options_.micro_batches > 1)
    accumulator_ =
        std::make_unique<GradientAccumulator>(parameters_, gradient_arena_.data(), elements(), compute_.context);
}

/// Drawn by the host, and where they lie elsewhere brought there in one go.
void MirroredStrategy::set_initial_values() {
  const auto requests = planner_.parameters();
  const std::size_t bytes = trained().bytes();
  const Buffer staging = device_ ? compute_.context->allocate_staging(bytes) : Buffer();
  auto* const drawn = reinterpret_cast<float*>(device_ ? staging.data() : values_.data());
  for (const auto& slot : slots_) {
    const ParameterRequest& request = requests[index_of(slot.id)];
    Parameter parameter = parameters_[index_of(slot.id)];
    parameter.value =
        Tensor({request.desc.shape, DType::float32, request.desc.layout}, drawn + slot.offset / size_of(dtype_));
    initialize(parameter, request.initializer.value_or(options_.initializer), request.fan_in, request.fan_out,
               options_.seed);
  }
  if (!device_) return;
  compute_.context->copy(drawn, trained().data(), bytes, *compute_.stream);
  if (scale_.bytes() > 0) {
    const LossScale first;
    compute_.context->copy(&first, scale_.data(), sizeof first, *compute_.stream);
  }
  compute_.stream->synchronize();
}

void MirroredStrategy::prepare_device_step(const OptimizerBindings& bindings) {
  const std::vector<double> rates = schedule_.rates();
  device_->set_update(options_.device_update(
      *compute_.context, *optimizer_, bindings,
      {.gradients = gradient_arena_.data(), .dtype = dtype_, .values = mixed() ? values_.data() : nullptr}, elements(),
      {.loss_scale = loss_scale_,
       .clip_norm = options_.clip_norm,
       .check_gradients = options_.check_gradients,
       .rates = rates,
       .more_scale = reinterpret_cast<LossScale*>(scale_.data())},
      *compute_.stream));
}

std::size_t MirroredStrategy::parameter_count() const {
  std::size_t count = 0;
  for (const auto& parameter : parameters_) count += static_cast<std::size_t>(parameter.value.desc().count());
  return count;
}

std::string MirroredStrategy::plan_hash() const { return Hash().add(joined(plan_lines_)).text(); }

}  // namespace ronda
