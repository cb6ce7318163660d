#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/group.hpp>
#include <ronda/runtime/core/error.hpp>

#include <cstring>

namespace ronda {
namespace {

/// Up to here an allreduce for once costs less by MPI than planning anything better does.
constexpr std::size_t not_worth_a_plan = std::size_t{4} << 10;

/// The part of `all` that belongs to `rank`, which has the size and type of `mine`.
Elements place_of(const Elements& all, const Elements& mine, int rank, int size) {
  if (all.dtype != mine.dtype || all.count != mine.count * static_cast<std::size_t>(size))
    throw LogicError("tensors of " + std::to_string(mine.count) + " and " + std::to_string(all.count) +
                     " elements on " + std::to_string(size) + " ranks do not fit together");
  const std::size_t begin = mine.count * static_cast<std::size_t>(rank);
  return all.part({begin, begin + mine.count});
}

void copy(const Elements& from, const Elements& to) {
  if (from.count > 0 && from.data != to.data) std::memcpy(to.data, from.data, from.bytes().size());
}

}  // namespace

int Communicator::rank() const noexcept { return group_->rank(); }
int Communicator::size() const noexcept { return group_->size(); }
const Topology& Communicator::topology() const noexcept { return group_->topology(); }

Buffer Communicator::allocate(std::size_t bytes, Memory memory) { return group_->allocate(bytes, memory); }

std::unique_ptr<Collective> Communicator::plan(const AllreduceSpec& spec) { return group_->plan(spec); }

void Communicator::allreduce(const Tensor& tensor, ReduceOp op, AllreduceAlgorithm algorithm) {
  const Elements elements = elements_of(tensor);
  if (size() == 1) return;
  if (algorithm == AllreduceAlgorithm::automatic && elements.bytes().size() <= not_worth_a_plan)
    return group_->allreduce_now(elements, op);
  plan({{tensor}, op, algorithm, "an allreduce"})->start().wait();
}

void Communicator::broadcast(const Tensor& tensor, int root) {
  if (root < 0 || root >= size())
    throw LogicError("a broadcast from rank " + std::to_string(root) + " of " + std::to_string(size()));
  if (size() > 1) group_->broadcast(elements_of(tensor).bytes(), root);
}

void Communicator::allgather(const Tensor& mine, const Tensor& all) {
  copy(elements_of(mine), place_of(elements_of(all), elements_of(mine), rank(), size()));
  if (size() > 1) group_->allgather(elements_of(all));
}

void Communicator::reduce_scatter(const Tensor& all, const Tensor& mine, ReduceOp op) {
  const Elements place = place_of(elements_of(all), elements_of(mine), rank(), size());
  if (size() > 1) group_->reduce_scatter(elements_of(all), op);
  copy(place, elements_of(mine));
}

void Communicator::barrier() { group_->barrier(); }

Communicator Communicator::split(int color, int key) const { return Communicator(group_->split(color, key)); }

std::vector<std::string> Communicator::gather_texts(std::string_view text) const { return group_->gather_texts(text); }

std::string Communicator::broadcast_text(std::string_view text, int root) const {
  return group_->broadcast_text(text, root);
}

std::vector<std::string> Communicator::take_notes() { return group_->take_notes(); }

}  // namespace ronda
