#include <ronda/collectives/algorithms/recursive_doubling.hpp>
#include <ronda/collectives/group.hpp>
#include <ronda/runtime/core/error.hpp>
#include <ronda/runtime/core/hash.hpp>

#include <algorithm>

namespace ronda {
Communicator::Group::Group(std::shared_ptr<Engine> engine, mpi::Communicator communicator, const GroupLimits& limits,
                           Ledger ledger)
    : engine_(std::move(engine)),
      ledger_(std::move(ledger)),
      communicator_(std::move(communicator)),
      limits_(limits),
      placement_(Placement::of(communicator_, limits.ranks_per_node)),
      rank_(communicator_.rank()),
      size_(communicator_.size()) {
  placement_.topology.oversubscribed = limits.oversubscribed;
}

// Memory
// ---------------------------------------------------------------------------------------------------------------

Buffer Communicator::Group::allocate(std::size_t bytes, Memory memory) {
  require_same("allocate", std::to_string(bytes) + " bytes");
  if (memory == Memory::on_device) return allocate_on_device(bytes);
  if (memory == Memory::per_rank || bytes == 0 || topology().most_ranks_on_a_node == 1) return Buffer::host(bytes);
  std::string refusal;
  const auto shared = share_memory(bytes, kept_for_mpi, refusal);
  if (shared == nullptr) {
    notes_.push_back(refusal + "; reductions use private memory, which is several times slower");
    return Buffer::host(bytes);
  }
  std::erase_if(allocations_, [](const Allocation& allocation) { return allocation.memory.expired(); });
  allocations_.push_back({++allocations_made_, shared});
  return {shared->segment(topology().rank_on_node).data(), bytes, Device{}, shared};
}

/// On every node, or on none.
std::shared_ptr<SharedMemory> Communicator::Group::share_memory(std::size_t bytes, std::size_t keep_free,
                                                                std::string& refusal) {
  return together("taking shared memory", [&]() -> std::shared_ptr<SharedMemory> {
    auto outcome = SharedMemory::create(placement_.node, {bytes, keep_free, limits_.shared_memory});
    if (communicator_.all(outcome.memory != nullptr)) return outcome.memory;
    const auto refusals = communicator_.allgather_texts(outcome.refusal);
    const auto first = std::find_if(refusals.begin(), refusals.end(), [](const auto& text) { return !text.empty(); });
    refusal = topology().hosts[static_cast<std::size_t>(first - refusals.begin())] + ": " + *first;
    return nullptr;
  });
}

// Collectives that are done when they return
// ---------------------------------------------------------------------------

void Communicator::Group::allreduce_now(const Elements& data, ReduceOp op) {
  require_sense(op, data.dtype);
  planned(std::make_unique<RecursiveDoubling>(across_all(), data, Reduction{op, size_}), "doubling",
          {Kind::allreduce, "an allreduce", {}, data.count, data.dtype, op})
      ->start()
      .wait();
}

void Communicator::Group::barrier() {
  together("a barrier", [&] { communicator_.barrier(); });
}

std::shared_ptr<Communicator::Group> Communicator::Group::split(int color, int key) {
  auto part = together("splitting the group", [&] {
    // Groups of one origin are told apart by their colour, others by where they were split off.
    const Hash identity = Hash().add(ledger_.group).add(ledger_.number).add(static_cast<std::uint64_t>(color));
    return std::make_shared<Group>(engine_, communicator_.split(color, key), limits_,
                                   Ledger{ledger_.recorder, identity.value()});
  });
  part->costs_ = costs_;
  if (part->costs_) part->costs_->trials.clear();
  return part;
}

// Texts
// ----------------------------------------------------------------------------------------------------------------

std::vector<std::string> Communicator::Group::gather_texts(std::string_view text) {
  return together("gathering texts", [&] { return communicator_.allgather_texts(text); });
}

std::string Communicator::Group::broadcast_text(std::string_view text, int root) {
  return together("broadcasting a text", [&] {
    std::string result(rank_ == root ? text : std::string_view());
    std::uint64_t length = result.size();
    communicator_.broadcast(std::as_writable_bytes(std::span(&length, 1)), root);
    result.resize(length);
    communicator_.broadcast(std::as_writable_bytes(std::span(result)), root);
    return result;
  });
}

std::optional<Communicator::Group::Differing> Communicator::Group::compare(std::string_view place,
                                                                           std::string_view text) {
  return together(place, [&]() -> std::optional<Differing> {
    const auto hashes = communicator_.allgather(Hash().add(place).add(text).value());
    if (std::all_of(hashes.begin(), hashes.end(), [&](std::uint64_t hash) { return hash == hashes[0]; })) return {};
    Differing differing;
    differing.places = communicator_.allgather_texts(place);
    differing.texts = communicator_.allgather_texts(text);
    return differing;
  });
}

void Communicator::Group::require_same(std::string_view place, std::string_view text) {
  const auto differing = compare(place, text);
  if (!differing) return;
  const auto say = [&](std::size_t rank) {
    return "rank " + std::to_string(rank) + " is at " + differing->places[rank] + " (" + differing->texts[rank] + ")";
  };
  std::size_t other = 0;
  while (differing->places[other] == differing->places[0] && differing->texts[other] == differing->texts[0]) ++other;
  LogicError error("the ranks disagree: " + say(0) + ", " + say(other));
  if (is_whole_world()) error.set_agreed();
  throw error;
}

}  // namespace ronda
