#include <ronda/core/clock.hpp>
#include <ronda/core/error.hpp>
#include <ronda/layers/graph_cut.hpp>
#include <ronda/layers/program.hpp>
#include <ronda/runtime/strategy/pipeline/stage.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

std::vector<std::size_t> received_inputs(const Program& program) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < program.inputs().size(); ++i)
    if (program.inputs()[i].field == received_field) places.push_back(i);
  return places;
}

Tensor flat(const Tensor& tensor) {
  return {{Shape{tensor.desc().padded_count()}, tensor.dtype(), {}}, tensor.data(), tensor.device()};
}

}  // namespace

std::size_t Stage::slots(std::size_t stages, std::size_t micro_batches) noexcept {
  return std::min(stages, micro_batches);
}

std::size_t Stage::bytes(const Program& program, std::span<const Field> fields, std::size_t rows, std::size_t slots) {
  std::size_t received = 0;
  for (const std::size_t input : received_inputs(program))
    received += Buffer::aligned(program.input_desc(input).bytes());
  const std::size_t held = slots > 1 ? slots * Batch::bytes_of(fields, rows) : 0;
  return (slots - 1) * program.buffer_plan().bytes + (slots + 1) * received + held;
}

Stage::Stage(Parts parts)
    : pipeline_(std::move(parts.pipeline)),
      replica_(parts.replica),
      more_(std::move(parts.more)),
      fields_(parts.fields),
      rows_(parts.rows),
      index_(static_cast<std::size_t>(pipeline_.rank())),
      stages_(static_cast<std::size_t>(pipeline_.size())),
      received_inputs_(received_inputs(parts.replica.program())),
      inputs_(parts.replica.program().inputs().size()) {
  slots_.resize(more_.size() + 1);
  slots_.front().program = &replica_.program();
  for (std::size_t i = 0; i < more_.size(); ++i) {
    slots_[i + 1].program = &more_[i];
    bind(slots_[i + 1]);
  }
  for (Slot& slot : slots_) {
    if (slots_.size() > 1) slot.held.emplace(fields_, rows_);
    plan_messages(slot);
  }
  plan_received();
  ahead_ = std::min(stages_ - 1 - index_, slots_.size() - 1);
}

/// To the replica's parameters and states, and activations of its own.
void Stage::bind(Slot& slot) {
  slot.activations = replica_.device().context->allocate(slot.program->buffer_plan().bytes);
  slot.views.assign(replica_.parameters().begin(), replica_.parameters().end());
  StateList states;
  replica_.visit_layer_states(states);
  std::vector<Tensor> tensors;
  for (const State& state : states.states()) tensors.push_back(state.tensor);
  slot.program->bind(slot.views, tensors, slot.activations.data(), slot.activations.device());
}

void Stage::plan_messages(Slot& slot) {
  const Program& program = *slot.program;
  if (!last()) {
    std::vector<Tensor> outputs = program.passed(), gradients = program.passed_gradients();
    outputs.push_back(program.output_place());
    gradients.push_back(program.output_gradient());
    for (const Tensor& output : outputs)
      slot.send_outputs.push_back({pipeline_.plan(SendSpec{flat(output), pipeline_.rank() + 1, "activations"}), {}});
    for (const Tensor& gradient : gradients)
      slot.receive_gradients.push_back(
          {pipeline_.plan(ReceiveSpec{flat(gradient), pipeline_.rank() + 1, "gradients of activations"}), {}});
  }
  for (const std::size_t input : received_inputs_)
    slot.send_gradients.push_back({pipeline_.plan(SendSpec{flat(program.input_gradient(input)), pipeline_.rank() - 1,
                                                           "gradients of activations"}),
                                   {}});
}

void Stage::plan_received() {
  received_.resize(slots_.size() + 1);
  for (Received& one : received_)
    for (const std::size_t input : received_inputs_) {
      const TensorDesc& desc = replica_.program().input_desc(input);
      const Buffer& memory = one.memory.emplace_back(replica_.device().context->allocate(desc.bytes()));
      const Tensor& tensor = one.tensors.emplace_back(desc, memory.data(), memory.device());
      one.receives.push_back({pipeline_.plan(ReceiveSpec{flat(tensor), pipeline_.rank() - 1, "activations"}), {}});
    }
}

void Stage::start(std::vector<Message>& messages) {
  for (Message& message : messages) message.done = message.planned->start();
}

bool Stage::are_done(const std::vector<Message>& messages) {
  return std::ranges::all_of(messages, [](const Message& message) { return message.done.ready(); });
}

/// Who asks for one that is not done moves all on.
void Stage::move_on() {
  for (const Received& one : received_)
    if (!are_done(one.receives)) return;
  for (const Slot& slot : slots_)
    for (const std::vector<Message>* some : {&slot.send_outputs, &slot.receive_gradients, &slot.send_gradients})
      if (!are_done(*some)) return;
}

void Stage::await(std::vector<Message>& messages, StepClock& clock) {
  for (Message& message : messages) std::exchange(message.done, {}).wait();
  clock.lap(&StepTimes::communication);
  const double now = steady_seconds(), seconds = now - std::exchange(mark_, now);
  if (trains_) waited_ += seconds;
}

void Stage::compute_done(double StepTimes::*phase, StepClock& clock) {
  clock.lap(phase);
  const double now = steady_seconds(), seconds = now - std::exchange(mark_, now);
  if (trains_) busy_ += seconds;
}

void Stage::begin(std::size_t micro_batches, bool trains) {
  coming_ = micro_batches;
  forwards_ = inputs_done_ = parameters_done_ = receives_ = 0;
  trains_ = trains;
  receive_ahead();
}

/// The next micro-batch may arrive: its buffer is free, since the backward of who had it is done.
void Stage::receive_ahead() {
  if (first() || receives_ == coming_) return;
  start(received_[receives_++ % received_.size()].receives);
}

bool Stage::inputs_are_due() const noexcept {
  if (forwards_ == coming_) return inputs_done_ < coming_;
  return forwards_ - inputs_done_ > ahead_;
}

/// Micro-batches between the halves: as many as there are stages before.
bool Stage::parameters_are_due() const noexcept {
  if (inputs_done_ == coming_) return parameters_done_ < coming_;
  return inputs_done_ - parameters_done_ > index_;
}

const Tensor& Stage::forward(const Batch& given, FunctionRef<Pass(const Batch&)> pass, StepClock& clock) {
  mark_ = steady_seconds();
  Slot& slot = slots_[forwards_ % slots_.size()];
  await(slot.send_outputs, clock);
  await(slot.send_gradients, clock);
  const bool holds = trains_ && slot.held;
  if (holds) slot.held->copy_from(given);
  slot.batch = holds ? &*slot.held : &given;
  slot.pass.emplace(pass(*slot.batch)).after_operation = AfterOperation(*this);
  if (!first()) {
    Received& here = received_[forwards_ % received_.size()];
    await(here.receives, clock);
    receive_ahead();
    for (std::size_t k = 0; k < received_inputs_.size(); ++k) inputs_[received_inputs_[k]] = here.tensors[k];
  }
  const auto fields = slot.program->inputs();
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (fields[i].field != received_field) inputs_[i] = slot.batch->field(fields[i].field);
  const Tensor& outputs = slot.program->forward(inputs_, *slot.pass);
  compute_done(&StepTimes::forward, clock);
  ++forwards_;
  if (last()) {
    slot.program->loss(slot.batch->target(), *slot.pass);
    compute_done(&StepTimes::backward, clock);
    return outputs;
  }
  start(slot.send_outputs);
  if (trains_) start(slot.receive_gradients);
  return outputs;
}

void Stage::backward_inputs(const OnReady& on_ready, StepClock& clock) {
  mark_ = steady_seconds();
  Slot& slot = slots_[inputs_done_++ % slots_.size()];
  await(slot.receive_gradients, clock);
  await(slot.send_outputs, clock);
  Pass pass = *slot.pass;
  pass.on_ready = on_ready;
  slot.program->backward_inputs(pass);
  compute_done(&StepTimes::backward, clock);
  start(slot.send_gradients);
}

void Stage::backward_parameters(const OnReady& on_ready, StepClock& clock) {
  mark_ = steady_seconds();
  Slot& slot = slots_[parameters_done_++ % slots_.size()];
  Pass pass = *slot.pass;
  pass.on_ready = on_ready;
  slot.program->backward_parameters(pass);
  compute_done(&StepTimes::backward, clock);
}

void Stage::settle() {
  for (Slot& slot : slots_)
    for (std::vector<Message>* sent : {&slot.send_outputs, &slot.send_gradients})
      for (Message& message : *sent) std::exchange(message.done, {}).wait();
}

}  // namespace ronda
