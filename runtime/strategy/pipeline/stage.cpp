#include <ronda/core/clock.hpp>
#include <ronda/core/error.hpp>
#include <ronda/layers/graph_cut.hpp>
#include <ronda/layers/host_program.hpp>
#include <ronda/runtime/strategy/pipeline/stage.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

std::optional<std::size_t> received_input(const Program& program) {
  const auto found = std::ranges::find(program.inputs(), received_field, &GraphInput::field);
  if (found == program.inputs().end()) return std::nullopt;
  return static_cast<std::size_t>(found - program.inputs().begin());
}

Tensor flat(const Tensor& tensor) {
  return {{Shape{tensor.desc().padded_count()}, tensor.dtype(), {}}, tensor.data(), tensor.device()};
}

}  // namespace

std::size_t Stage::slots(std::size_t stage, std::size_t stages, std::size_t micro_batches) noexcept {
  return std::min(stages - stage, micro_batches);
}

std::size_t Stage::bytes(const Program& program, std::span<const Field> fields, std::size_t rows, std::size_t slots) {
  const auto input = received_input(program);
  const std::size_t received = input ? Buffer::aligned(program.input_desc(*input).bytes()) : 0;
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
      received_input_(index_ == 0 ? std::nullopt : received_input(parts.replica.program())),
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
  if (first()) return;
  const TensorDesc& desc = replica_.program().input_desc(*received_input_);
  received_.resize(slots_.size() + 1);
  for (Received& one : received_) {
    one.memory = replica_.device().context->allocate(desc.bytes());
    one.tensor = Tensor(desc, one.memory.data(), one.memory.device());
    one.receive = pipeline_.plan(ReceiveSpec{flat(one.tensor), pipeline_.rank() - 1, "activations"});
  }
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
  if (!last()) {
    slot.send_output =
        pipeline_.plan(SendSpec{flat(slot.program->output_place()), pipeline_.rank() + 1, "activations"});
    slot.receive_gradient = pipeline_.plan(
        ReceiveSpec{flat(slot.program->output_gradient()), pipeline_.rank() + 1, "gradients of activations"});
  }
  if (!first())
    slot.send_gradient = pipeline_.plan(SendSpec{flat(slot.program->input_gradient(*received_input_)),
                                                 pipeline_.rank() - 1, "gradients of activations"});
}

void Stage::await(Event& event, StepClock& clock) {
  event.wait();
  event = {};
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
  forwards_ = backwards_ = receives_ = 0;
  trains_ = trains;
  receive_ahead();
}

/// The next micro-batch may arrive: its buffer is free, since the backward of who had it is done.
void Stage::receive_ahead() {
  if (first() || receives_ == coming_) return;
  Received& next = received_[receives_++ % received_.size()];
  next.arrived = next.receive->start();
}

const Tensor& Stage::forward(const Batch& given, FunctionRef<Pass(const Batch&)> pass, StepClock& clock) {
  mark_ = steady_seconds();
  Slot& slot = slots_[forwards_ % slots_.size()];
  await(slot.output_sent, clock);
  await(slot.gradient_sent, clock);
  const bool holds = trains_ && slot.held;
  if (holds) slot.held->copy_from(given);
  slot.batch = holds ? &*slot.held : &given;
  slot.pass.emplace(pass(*slot.batch));
  if (!first()) {
    Received& here = received_[forwards_ % received_.size()];
    await(here.arrived, clock);
    receive_ahead();
    inputs_[*received_input_] = here.tensor;
  }
  const auto fields = slot.program->inputs();
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (i != received_input_) inputs_[i] = slot.batch->field(fields[i].field);
  const Tensor& outputs = slot.program->forward(inputs_, *slot.pass);
  compute_done(&StepTimes::forward, clock);
  ++forwards_;
  if (last()) {
    slot.program->loss(slot.batch->target(), *slot.pass);
    compute_done(&StepTimes::backward, clock);
    return outputs;
  }
  slot.output_sent = slot.send_output->start();
  if (trains_) slot.gradient_received = slot.receive_gradient->start();
  return outputs;
}

void Stage::backward(const OnReady& on_ready, StepClock& clock) {
  mark_ = steady_seconds();
  Slot& slot = slots_[backwards_++ % slots_.size()];
  await(slot.gradient_received, clock);
  await(slot.output_sent, clock);
  Pass pass = *slot.pass;
  pass.on_ready = on_ready;
  slot.program->backward(pass);
  compute_done(&StepTimes::backward, clock);
  if (!first()) slot.gradient_sent = slot.send_gradient->start();
}

void Stage::settle() {
  for (Slot& slot : slots_) {
    std::exchange(slot.output_sent, {}).wait();
    std::exchange(slot.gradient_sent, {}).wait();
  }
}

}  // namespace ronda
