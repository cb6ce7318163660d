#include <ronda/collectives/group/kept_allreduces.hpp>
#include <ronda/collectives/members/spec_check.hpp>

#include <algorithm>

namespace ronda {

bool KeptAllreduces::keeps(const Tensor& tensor) const {
  constexpr std::size_t most_copied = std::size_t{1} << 20;  // above, copies take longer than a plan
  return members_.size() > 1 && !memory_.is_one_a_node(elements_of(tensor)) && tensor.device() == Device{} &&
         elements_of(tensor).bytes().size() <= most_copied;
}

void KeptAllreduces::run(const Tensor& tensor, ReduceOp op, AllreduceAlgorithm algorithm) {
  const Elements data = elements_of(tensor);
  const auto like = [&](const Kept& kept) {
    return kept.count == data.count && kept.dtype == data.dtype && kept.op == op && kept.algorithm == algorithm;
  };
  const auto found = std::ranges::find_if(kept_, like);
  if (found != kept_.end()) {
    agreement_.check_here("an allreduce", [&] { require_memory(tensor, "an allreduce"); });
    kept_.splice(kept_.begin(), kept_, found);
  } else {
    kept_.push_front(make(tensor, op, algorithm));
    if (kept_.size() > most_kept) kept_.pop_back();
  }
  const Kept& kept = kept_.front();
  std::ranges::copy(data.bytes(), kept.memory.data());  // none of no elements, whose address may be null
  kept.plan->start().wait();
  std::copy_n(kept.memory.data(), data.bytes().size(), data.bytes().begin());
}

KeptAllreduces::Kept KeptAllreduces::make(const Tensor& tensor, ReduceOp op, AllreduceAlgorithm algorithm) {
  AllreduceSpec spec{{tensor}, op, algorithm, "an allreduce"};
  agreement_.require_same("planning " + spec.label, [&] {
    return complete(spec, {members_.rank(), members_.size(), {}});
  });
  const Elements data = elements_of(tensor);
  Kept kept{data.count, data.dtype, op, algorithm, memory_.allocate(data.bytes().size(), Memory::node_shared), nullptr};
  spec.tensors = {Tensor({Shape{static_cast<std::int64_t>(data.count)}, data.dtype, {}}, kept.memory.data())};
  kept.plan = links_.made_on_all(spec.label, [&] { return planner_.plan(spec, false); });
  return kept;
}

}  // namespace ronda
