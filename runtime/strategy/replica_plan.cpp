#include <ronda/core/buffer.hpp>
#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/replica_plan.hpp>

namespace ronda {

ReplicaPlan::ReplicaPlan(const Program& program, const Primitives& primitives)
    : dtype(primitives.dtype()), requests(program.parameters().begin(), program.parameters().end()) {
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
  lines.push_back("primitives " + primitives.name());
  lines.insert(lines.end(), program.lines().begin(), program.lines().end());
  for (const auto& slot : slots)
    lines.push_back(slot.name + ": " + requests[index_of(slot.id)].desc.text() + " at " + std::to_string(slot.offset));
}

}  // namespace ronda
