#include <ronda/core/error.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/runtime/strategy/replica_plan.hpp>

#include <algorithm>

namespace ronda {
namespace {

TensorDesc input_of(std::span<const Field> fields, std::size_t rows) {
  const auto field = std::ranges::find(fields, "input", &Field::name);
  if (field == fields.end()) throw InputError("the data has no field 'input'");
  if (field->dtype != DType::float32)
    throw InputError("the model's input is float32, not " + std::string(name_of(field->dtype)));
  if (rows == 0) throw InputError("a batch has at least one sample");
  std::vector<std::int64_t> extents{static_cast<std::int64_t>(rows)};
  extents.insert(extents.end(), field->shape.begin(), field->shape.end());
  return {Shape(extents), DType::float32, {}};
}

}  // namespace

ReplicaPlan::ReplicaPlan(Layer& model, Loss& loss, Planner& planner, std::span<const Field> fields, std::size_t rows)
    : input(input_of(fields, rows)), dtype(planner.primitives().dtype()) {
  if (mixed()) cast.emplace(dtype);
  const TensorDesc outputs = planner.plan(model, cast ? planner.plan(*cast, input) : input);
  planner.plan(loss, outputs);
  requests.assign(planner.parameters().begin(), planner.parameters().end());
  if (requests.empty()) throw InputError("the model has no parameters to train");
  ArenaPlan arena;
  for (std::size_t i = requests.size(); i-- > 0;) {
    if (requests[i].desc.dtype != dtype)
      throw LogicError("parameter " + requests[i].name + " is " + requests[i].desc.text() + "; this model's are " +
                       std::string(name_of(dtype)));
    const std::size_t bytes = requests[i].desc.bytes();
    slots.push_back({ParameterId{static_cast<std::uint32_t>(i)}, requests[i].name, arena.reserve(bytes), bytes});
  }
  arena_bytes = arena.bytes();
  buffer_requests.assign(planner.buffers().begin(), planner.buffers().end());
  buffers = place_buffers(buffer_requests);
  lines.push_back("primitives " + planner.primitives().name());
  lines.insert(lines.end(), planner.notes().begin(), planner.notes().end());
  for (const auto& slot : slots)
    lines.push_back(slot.name + ": " + requests[index_of(slot.id)].desc.text() + " at " + std::to_string(slot.offset));
}

}  // namespace ronda
