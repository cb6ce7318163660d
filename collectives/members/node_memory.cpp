#include <ronda/collectives/members/node_memory.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

void add_bits(std::span<std::byte> mine, std::span<const std::byte> other) {
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] |= other[i];
}

}  // namespace

Buffer NodeMemory::allocate(std::size_t bytes, Memory memory) {
  const bool plain = memory == Memory::per_rank || bytes == 0 || members_.topology().most_ranks_on_a_node == 1;
  Buffer buffer;
  agreement_.require_same("allocate", [&] {
    if (plain) buffer = Buffer::host(bytes);
    return std::to_string(bytes) + " bytes of the " + (memory == Memory::per_rank ? "rank's" : "node's") +
           (memory == Memory::one_a_node ? ", once" : "");
  });
  if (plain) return buffer;
  std::string refusal;
  const auto shared = take(bytes, kept_for_mpi, refusal, memory == Memory::one_a_node);
  if (shared == nullptr) {
    if (memory == Memory::one_a_node)
      members_.add_note(refusal + "; the node's ranks have no memory in common");
    else if (!std::exchange(fell_back_, true))
      members_.add_note(refusal + "; reductions use private memory, which is several times slower");
    agreement_.require_same("allocate", [&] {
      buffer = Buffer::host(bytes);
      return std::string();
    });
    return buffer;
  }
  std::erase_if(allocations_, [](const Allocation& allocation) { return allocation.memory.expired(); });
  allocations_.push_back({++made_, shared, memory == Memory::one_a_node});
  return {shared->segment(members_.topology().rank_on_node).data(), bytes, Device{}, shared};
}

std::shared_ptr<SharedMemory> NodeMemory::take(std::size_t bytes, std::size_t keep_free, std::string& refusal,
                                               bool one) {
  return agreement_.together("taking shared memory", [&]() -> std::shared_ptr<SharedMemory> {
    auto outcome = SharedMemory::create(members_.on_node(), {bytes, keep_free, members_.limits().shared_memory, one});
    if (members_.all().all(outcome.memory != nullptr)) return outcome.memory;
    const auto refusals = members_.all().gather_texts(outcome.refusal);
    const auto first = std::ranges::find_if(refusals, [](const auto& text) { return !text.empty(); });
    refusal = members_.topology().hosts[static_cast<std::size_t>(first - refusals.begin())] + ": " + *first;
    return nullptr;
  });
}

std::shared_ptr<SharedMemory> NodeMemory::take_barriers(std::size_t tensors, std::string& refusal) {
  return take(tensors * NodeCopies::lines_a_rank * sizeof(BarrierLine), 0, refusal);
}

std::vector<NodeMemory::Site> NodeMemory::locate(std::span<const Elements> tensors) {
  struct Place {
    std::uint64_t allocation = 0;  ///< 0: memory that no other rank sees
    std::uint64_t offset = 0;      ///< in this rank's segment
  };
  const Topology& topology = members_.topology();
  std::vector<Site> sites(tensors.size());
  std::vector<Place> mine(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Allocation* allocation = find(tensors[i]);
    if (allocation == nullptr) continue;
    sites[i].memory = allocation->memory.lock();
    const std::byte* segment = sites[i].memory->segment(topology.rank_on_node).data();
    mine[i] = {allocation->number, static_cast<std::uint64_t>(tensors[i].data - segment)};
  }
  constexpr const char* what = "planning: where tensors lie";
  const auto on_node = agreement_.together(what, [&] { return members_.on_node().gather(mine); });
  // A bit of every number and of its inverse: both are 1 only where ranks have different numbers.
  std::vector<std::uint64_t> bits;
  for (const Place& one : mine) bits.insert(bits.end(), {one.allocation, ~one.allocation});
  agreement_.together(what, [&] { members_.all().merge(std::as_writable_bytes(std::span(bits)), add_bits); });
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (mine[i].allocation == 0 || (bits[2 * i] & bits[2 * i + 1]) != 0) sites[i].memory.reset();
    for (int rank = 0; rank < topology.ranks_on_node; ++rank)
      sites[i].offsets.push_back(on_node[static_cast<std::size_t>(rank) * tensors.size() + i].offset);
  }
  return sites;
}

void NodeMemory::require_own(const Elements& elements, const std::string& label) const {
  if (is_one_a_node(elements))
    throw LogicError(
        label +
        ": a tensor lies in memory that is the same for all ranks of the node (Memory::one_a_node), which a "
        "broadcast alone takes; allocate it as Memory::node_shared");
}

const NodeMemory::Allocation* NodeMemory::find(const Elements& elements) const {
  for (const Allocation& allocation : allocations_) {
    const auto memory = allocation.memory.lock();
    if (memory == nullptr) continue;
    const auto segment = memory->segment(members_.topology().rank_on_node);
    const auto bytes = elements.bytes();
    if (bytes.data() >= segment.data() && bytes.data() + bytes.size() <= segment.data() + segment.size())
      return &allocation;
  }
  return nullptr;
}

std::vector<std::byte*> NodeMemory::places_of(const Site& site) const {
  std::vector<std::byte*> places;
  for (int rank = 0; site.memory != nullptr && rank < members_.topology().ranks_on_node; ++rank)
    places.push_back(site.memory->segment(rank).data() + site.offsets[static_cast<std::size_t>(rank)]);
  return places;
}

NodeCopies NodeMemory::copies_of(const Elements& elements, const Site& site,
                                 const std::shared_ptr<SharedMemory>& barriers, std::size_t index) const {
  NodeCopies copies;
  if (site.memory == nullptr || barriers == nullptr) return copies;
  copies.data = places_of(site);
  copies.rank = members_.topology().rank_on_node;
  copies.ranks = *members_.on_node().ranks();
  copies.count = elements.count;
  copies.dtype = elements.dtype;
  for (int rank = 0; rank < members_.topology().ranks_on_node; ++rank)
    copies.lines.push_back(reinterpret_cast<BarrierLine*>(barriers->segment(rank).data()) +
                           index * NodeCopies::lines_a_rank);
  copies.keeper = std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(site.memory, barriers);
  return copies;
}

}  // namespace ronda
