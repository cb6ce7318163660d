#include <ronda/core/buffer.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/state.hpp>
#include <ronda/runtime/strategy/replica/replica_plan.hpp>

namespace ronda {

ReplicaPlan::ReplicaPlan(const Program& program, const Primitives& primitives, std::optional<DType> reduced_in)
    : dtype(primitives.dtype()),
      reduce_dtype(reduced_in.value_or(dtype)),
      requests(program.parameters().begin(), program.parameters().end()) {
  if (requests.empty()) throw InputError("the model has no parameters to train");
  if (widens() && (reduce_dtype != DType::float32 || !primitives.on_processor()))
    throw InputError("gradients of " + std::string(name_of(dtype)) + " are summed over the ranks in that type, or in " +
                     "float32 on the processor, not in " + std::string(name_of(reduce_dtype)));
  ArenaPlan arena;
  const auto place = [&](bool sparse) {
    for (std::size_t i = requests.size(); i-- > 0;) {
      if (requests[i].sparse != sparse) continue;
      if (requests[i].desc.dtype != dtype)
        throw LogicError("parameter " + requests[i].name + " is " + requests[i].desc.text() + "; this model's are " +
                         std::string(name_of(dtype)));
      if (sparse && mixed())
        throw InputError("the sparse gradient of " + requests[i].name + " is float32's alone, not " +
                         std::string(name_of(dtype)) + "'s; make the embedding with " + setting("sparse", "false"));
      const std::size_t bytes = requests[i].desc.bytes();
      slots.push_back({ParameterId{static_cast<std::uint32_t>(i)}, requests[i].name, arena.reserve(bytes), bytes});
    }
  };
  place(false);
  dense_slots = slots.size();
  dense_bytes = arena.bytes();
  place(true);
  arena_bytes = arena.bytes();
  lines.push_back("primitives " + primitives.name());
  if (widens()) lines.push_back("gradients are summed over the ranks in " + std::string(name_of(reduce_dtype)));
  lines.insert(lines.end(), program.lines().begin(), program.lines().end());
  for (const auto& slot : slots)
    lines.push_back(slot.name + ": " + requests[index_of(slot.id)].desc.text() + " at " + std::to_string(slot.offset) +
                    (requests[index_of(slot.id)].sparse ? ", sparse" : ""));
}

std::size_t ReplicaPlan::list_bytes() const {
  std::size_t bytes = 0;
  for (const GradientSlot& table : tables())
    bytes += Buffer::aligned(TouchedRows::length(rows(table)) * sizeof(std::int32_t));
  return bytes;
}

}  // namespace ronda
