#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/replica/shared_values.hpp>

#include <string>

namespace ronda {

void require_shareable(const ReplicaPlan& plan) {
  if (!plan.mixed()) return;
  throw InputError("one copy of the parameters (" + setting("one_copy") +
                   ") is for float32, and layers read these in " + std::string(name_of(plan.dtype)) + "; leave it out");
}

Buffer allocate_on_node(Communicator& communicator, ArenaPlace place, std::size_t bytes, Memory memory) {
  Buffer taken = allocate_arena(place, bytes, communicator, memory);
  const auto notes = communicator.take_notes();
  if (notes.empty()) return taken;
  throw as_agreed(ResourceError("one copy of the parameters (" + setting("one_copy") +
                                ") has no room in the node's memory: " + notes.front() +
                                "; make room, or leave it out"));
}

bool writes_values(const Replica& replica, const Communicator& communicator) noexcept {
  return !replica.shares_values() || communicator.topology().rank_on_node == 0;
}

void meet_where_shared(const Replica& replica, Communicator& communicator) {
  if (replica.shares_values()) communicator.barrier();
}

void write_shares(const Replica& replica, Communicator& communicator, FunctionRef<void()> write) {
  if (!replica.shares_values()) return write();
  communicator.barrier();
  agree(communicator, [&] { write(); });
}

void write_once(const Replica& replica, Communicator& communicator, FunctionRef<void()> write) {
  write_shares(replica, communicator, [&] {
    if (writes_values(replica, communicator)) write();
  });
}

}  // namespace ronda
