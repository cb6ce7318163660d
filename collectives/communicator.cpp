#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/group/group.hpp>
#include <ronda/collectives/nccl/nccl_library.hpp>
#include <ronda/core/error.hpp>

#include <cstring>
#include <numeric>
#include <utility>

namespace ronda {
namespace {

/// Up to here an allreduce for once takes less time than agreeing on how to do it does. Every MPI copies messages of
/// this length whole, and sees that one is too long for its receiver before it writes: a longer one, of another process
/// of the node, may be written first.
constexpr std::size_t not_worth_a_plan = std::size_t{2} << 10;

/// The part of `all` that belongs to `rank`; `mine` has its size.
Elements place_of(const Elements& all, const Elements& mine, const std::vector<std::size_t>& counts, int rank) {
  const std::size_t begin = counts.empty() ? mine.count * static_cast<std::size_t>(rank)
                                           : std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
  return all.part({begin, begin + mine.count});
}

void copy(const Elements& from, const Elements& to) {
  if (from.count > 0 && from.data != to.data) std::memcpy(to.data, from.data, from.bytes().size());
}

void run(const std::unique_ptr<Collective>& collective) { collective->start().wait(); }

}  // namespace

int Communicator::rank() const noexcept { return group_->members().rank(); }
int Communicator::size() const noexcept { return group_->members().size(); }
const Topology& Communicator::topology() const noexcept { return group_->members().topology(); }

void Communicator::set_step(std::uint64_t step) const noexcept {
  if (const auto& recorder = group_->members().ledger().recorder) recorder->set_step(step);
}

Buffer Communicator::allocate(std::size_t bytes, Memory memory) { return group_->allocate(bytes, memory); }

void Communicator::use_device(std::shared_ptr<DeviceContext> device, AllreduceAlgorithm wanted) {
  group_->use_device(std::move(device), wanted, nccl::built_in_library());
}

const std::vector<std::string>& Communicator::devices() const noexcept {
  static const std::vector<std::string> none;
  return group_->devices() != nullptr ? group_->devices()->lines() : none;
}

std::unique_ptr<Recording> Communicator::watched(std::unique_ptr<Recording> recording, const std::string& what) const {
  return group_->devices() != nullptr ? group_->devices()->watched(std::move(recording), what) : std::move(recording);
}

void Communicator::require_devices() const {
  if (group_->devices() != nullptr) group_->devices()->require_whole();
}

std::vector<std::byte*> Communicator::copies_on_node(const Tensor& tensor) {
  return group_->copies_on_node(elements_of(tensor));
}

std::unique_ptr<Collective> Communicator::plan(const CollectiveSpec& spec) { return group_->plan(spec); }

void Communicator::allreduce(const Tensor& tensor, ReduceOp op, AllreduceAlgorithm algorithm) {
  if (tensor.device() == Device{} && algorithm == AllreduceAlgorithm::automatic &&
      elements_of(tensor).bytes().size() <= not_worth_a_plan)
    return group_->allreduce_now(tensor, op);
  if (group_->kept().keeps(tensor)) return group_->kept().run(tensor, op, algorithm);
  run(group_->plan(AllreduceSpec{{tensor}, op, algorithm, "an allreduce"}, false));
}

void Communicator::broadcast(const Tensor& tensor, int root) { run(plan(BroadcastSpec{tensor, root})); }

void Communicator::reduce(const Tensor& tensor, int root, ReduceOp op) { run(plan(ReduceSpec{tensor, root, op})); }

void Communicator::allgather(const Tensor& mine, const Tensor& all, const std::vector<std::size_t>& counts) {
  const auto collective = group_->plan(AllgatherSpec{all, counts}, true, &mine);  // now they are known to fit
  copy(elements_of(mine), place_of(elements_of(all), elements_of(mine), counts, rank()));
  run(collective);
}

void Communicator::reduce_scatter(const Tensor& all, const Tensor& mine, ReduceOp op,
                                  const std::vector<std::size_t>& counts) {
  run(group_->plan(ReduceScatterSpec{all, op, counts}, true, &mine));
  copy(place_of(elements_of(all), elements_of(mine), counts, rank()), elements_of(mine));
}

void Communicator::gather(const Tensor& mine, const Tensor& all, int root, std::vector<std::size_t> counts) {
  run(plan(GatherSpec{mine, all, root, std::move(counts)}));
}

void Communicator::scatter(const Tensor& all, const Tensor& mine, int root, std::vector<std::size_t> counts) {
  run(plan(ScatterSpec{all, mine, root, std::move(counts)}));
}

void Communicator::alltoall(const Tensor& outgoing, const Tensor& incoming, std::vector<std::size_t> outgoing_counts,
                            std::vector<std::size_t> incoming_counts) {
  run(plan(AlltoallSpec{outgoing, incoming, std::move(outgoing_counts), std::move(incoming_counts)}));
}

void Communicator::send(const Tensor& tensor, int to) { run(plan(SendSpec{tensor, to})); }
void Communicator::receive(const Tensor& tensor, int from) { run(plan(ReceiveSpec{tensor, from})); }

void Communicator::barrier() { group_->barrier(); }

Communicator Communicator::split(int color, int key) const { return Communicator(group_->split(color, key)); }

const LinkCosts& Communicator::link_costs() const { return group_->allreduces().link_costs(); }
void Communicator::use_link_costs(LinkCosts costs) { group_->allreduces().use(std::move(costs)); }
const LinkCosts* Communicator::known_link_costs() const noexcept {
  const auto& costs = group_->allreduces().known_costs();
  return costs ? &*costs : nullptr;
}

std::vector<std::string> Communicator::gather_texts(std::string_view text) const {
  return group_->agreement().gather_texts(text);
}

std::string Communicator::broadcast_text(std::string_view text, int root) const {
  return group_->agreement().broadcast_text(text, root);
}

const Clock& Communicator::clock() const noexcept { return group_->members().engine()->clock(); }

void Communicator::wait_until(FunctionRef<bool()> done) const { group_->members().engine()->wait_until(done); }

std::vector<Message> Communicator::take_notes() { return group_->members().take_notes(); }

}  // namespace ronda
