#include <ronda/collectives/group/group.hpp>
#include <ronda/collectives/host/algorithms/recursive_doubling.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>

#include <algorithm>
#include <cstring>
#include <new>

namespace ronda {
namespace {

/// What is wrong on a rank, in a form that can go to others in place of what it should have said.
struct Complaint {
  enum Kind : char { misuse = 1, input, resource };
  Kind kind = misuse;
  std::string why;

  /// Of the exception that is being handled.
  [[nodiscard]] static Complaint current(std::string_view place) {
    try {
      throw;
    } catch (const InputError& error) {
      return {input, error.what()};
    } catch (const ResourceError& error) {
      return {resource, error.what()};
    } catch (const std::bad_alloc&) {
      return {resource, std::string(place) + ": out of memory"};
    } catch (const std::exception& error) {
      return {misuse, error.what()};
    } catch (...) {
      return {misuse, "something that is no exception was thrown"};
    }
  }
  [[nodiscard]] std::string text() const { return static_cast<char>(kind) + why; }
  [[nodiscard]] static std::optional<Complaint> parse(const std::string& text) {
    if (text.empty() || text[0] < misuse || text[0] > resource) return std::nullopt;
    return Complaint{static_cast<Kind>(text[0]), text.substr(1)};
  }
  [[noreturn]] void fail(const std::string& who, bool agreed) const {
    if (kind == input) throw_as<InputError>(who, agreed);
    if (kind == resource) throw_as<ResourceError>(who, agreed);
    throw_as<LogicError>(who, agreed);
  }

 private:
  template <class Failure>
  [[noreturn]] void throw_as(const std::string& who, bool agreed) const {
    Failure error(who + why);
    if (agreed) error.set_agreed();
    throw error;
  }
};

}  // namespace

Communicator::Group::Group(std::shared_ptr<Engine> engine, mpi::Communicator communicator, const GroupLimits& limits,
                           Ledger ledger)
    : engine_(std::move(engine)),
      ledger_(std::move(ledger)),
      communicator_(std::move(communicator)),
      limits_(limits),
      placement_(Placement::of(communicator_, limits.ranks_per_node)),
      rank_(communicator_.rank()),
      size_(communicator_.size()),
      everybody_(MpiTransport::up_to(size_)) {
  placement_.topology.oversubscribed = limits.oversubscribed;
  std::vector<int> here;
  for (const int rank : placement_.ranks_of_node[static_cast<std::size_t>(topology().node)])
    here.push_back(ledger_.world_rank(rank));
  meetings_ = {std::make_shared<Meeting>(engine_, communicator_, ledger_.world_ranks),
               std::make_shared<Meeting>(engine_, placement_.node, std::move(here))};
  communicator_.gather_by(meetings_[0]);
  placement_.node.gather_by(meetings_[1]);
}

Communicator::Group::~Group() {
  kept_.clear();  // uses all of the rest
  const bool freed = engine_->in_turn([&] {
    communicator_ = mpi::Communicator();
    plain_mpi_ = mpi::Communicator();
    placement_.node = mpi::Communicator();
    limits_.mpi_operations.reset();
  });
  if (freed) return;
  communicator_.leave_behind();
  plain_mpi_.leave_behind();
  placement_.node.leave_behind();
  new std::shared_ptr(limits_.mpi_operations);
}

// ---- memory ---------------------------------------------------------------------------------------------------------

Buffer Communicator::Group::allocate(std::size_t bytes, Memory memory) {
  const bool on_a_device = memory == Memory::on_device;
  const bool plain = memory == Memory::per_rank || bytes == 0 || topology().most_ranks_on_a_node == 1;
  const char* const whose = on_a_device ? "device" : memory == Memory::per_rank ? "rank" : "node";
  Buffer buffer;
  require_same("allocate", [&] {
    if (plain && !on_a_device) buffer = Buffer::host(bytes);
    return std::to_string(bytes) + " bytes of the " + whose + "'s";
  });
  if (on_a_device) return allocate_on_device(bytes);
  if (plain) return buffer;
  std::string refusal;
  const auto shared = share_memory(bytes, kept_for_mpi, refusal);
  if (shared == nullptr) {
    notes_.push_back(refusal + "; reductions use private memory, which is several times slower");
    require_same("allocate", [&] {
      buffer = Buffer::host(bytes);
      return std::string();
    });
    return buffer;
  }
  std::erase_if(allocations_, [](const Allocation& allocation) { return allocation.memory.expired(); });
  allocations_.push_back({++allocations_made_, shared});
  return {shared->segment(topology().rank_on_node).data(), bytes, Device{}, shared};
}

std::string Communicator::Group::number_of_rank(std::size_t rank) const {
  return "rank " + std::to_string(ledger_.world_rank(static_cast<int>(rank)));
}

std::string Communicator::Group::name_of_rank(std::size_t rank) const {
  return number_of_rank(rank) + " on " + topology().hosts[rank];
}

void Communicator::Group::require_memory(const Tensor& tensor, const std::string& label) {
  if (tensor.data() == nullptr && tensor.desc().count() > 0)
    throw InputError(label + ": a tensor of " + tensor.desc().text() + " has no memory");
}

/// What one is to be written to, no other may be read from.
void Communicator::Group::require_apart(std::vector<Tensor> tensors, const std::string& label) {
  std::erase_if(tensors, [](const Tensor& tensor) { return tensor.desc().count() == 0; });
  std::ranges::sort(tensors, {}, &Tensor::data);
  for (std::size_t i = 1; i < tensors.size(); ++i)
    if (tensors[i - 1].data() + tensors[i - 1].desc().bytes() > tensors[i].data())
      throw LogicError(label + ": two of its tensors overlap");
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

// ---- collectives that are done when they return ---------------------------------------------------------------------

void Communicator::Group::allreduce_now(const Tensor& tensor, ReduceOp op) {
  require_sense(op, tensor.dtype());
  require_memory(tensor, "an allreduce");
  const Elements data = elements_of(tensor);
  planned(std::make_unique<RecursiveDoubling>(across_all(), data, Reduction{op, size_}), "doubling",
          {Kind::allreduce, "an allreduce", {}, data.count, data.dtype, op})
      ->start()
      .wait();
}

bool Communicator::Group::keeps(const Tensor& tensor) const {
  constexpr std::size_t most_copied = std::size_t{1} << 20;  // above, copies take longer than a plan
  return size_ > 1 && tensor.device() == Device{} && elements_of(tensor).bytes().size() <= most_copied;
}

void Communicator::Group::allreduce_kept(const Tensor& tensor, ReduceOp op, AllreduceAlgorithm algorithm) {
  const Elements data = elements_of(tensor);
  const auto like = [&](const Kept& kept) {
    return kept.count == data.count && kept.dtype == data.dtype && kept.op == op && kept.algorithm == algorithm;
  };
  const auto found = std::ranges::find_if(kept_, like);
  if (found != kept_.end()) {
    require_memory(tensor, "an allreduce");
    kept_.splice(kept_.begin(), kept_, found);
  } else {
    kept_.push_front(make_kept(tensor, op, algorithm));
    if (kept_.size() > most_kept) kept_.pop_back();
  }
  const Kept& kept = kept_.front();
  std::memcpy(kept.memory.data(), data.data, data.bytes().size());
  kept.plan->start().wait();
  std::memcpy(data.data, kept.memory.data(), data.bytes().size());
}

Communicator::Group::Kept Communicator::Group::make_kept(const Tensor& tensor, ReduceOp op,
                                                         AllreduceAlgorithm algorithm) {
  const AllreduceSpec given{{tensor}, op, algorithm, "an allreduce"};
  require_same("planning " + given.label, [&] {
    require_memory(tensor, given.label);
    require_sense(op, tensor.dtype());
    return words_of(given);
  });
  const Elements data = elements_of(tensor);
  Kept kept{data.count, data.dtype, op, algorithm, allocate(data.bytes().size(), Memory::node_shared), nullptr};
  const Tensor copy({Shape{static_cast<std::int64_t>(data.count)}, data.dtype, {}}, kept.memory.data());
  kept.plan = made_on_all(given.label, [&] {
    return plan_on_host({{copy}, op, algorithm, given.label}, false, nullptr);  // it goes with the group
  });
  return kept;
}

void Communicator::Group::barrier() {
  together("a barrier", [&] { communicator_.barrier(); });
}

std::shared_ptr<Communicator::Group> Communicator::Group::split(int color, int key) {
  require_same("splitting the group", [&] {
    if (color < 0) throw LogicError("the color " + std::to_string(color) + " of a split is less than 0");
    return std::string();
  });
  auto part = together_in_mpi("splitting the group", [&] {
    // Groups of one origin are told apart by their colour, others by where they were split off.
    const Hash identity = Hash().add(ledger_.group).add(ledger_.number).add(static_cast<std::uint64_t>(color));
    auto ranks = communicator_.split(color, key);
    auto world_ranks = ranks.allgather(ledger_.world_rank(rank_));
    return std::make_shared<Group>(engine_, std::move(ranks), limits_,
                                   Ledger{ledger_.recorder, identity.value(), 0, std::move(world_ranks)});
  });
  part->costs_ = costs_;
  if (part->costs_) part->costs_->trials.clear();
  return part;
}

// ---- texts ----------------------------------------------------------------------------------------------------------

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
    meetings_[0]->at("comparing");  // ranks that are at different places find that out here
    const auto hashes = communicator_.allgather(Hash().add(place).add(text).value());
    if (std::all_of(hashes.begin(), hashes.end(), [&](std::uint64_t hash) { return hash == hashes[0]; })) return {};
    Differing differing;
    differing.places = communicator_.allgather_texts(place);
    differing.texts = communicator_.allgather_texts(text);
    return differing;
  });
}

void Communicator::Group::require_same(std::string_view place, const std::function<std::string()>& say) {
  std::string text;
  try {
    text = say();
  } catch (const CommunicationError&) {
    throw;  // the others cannot be told
  } catch (...) {
    text = Complaint::current(place).text();
  }
  const auto complaint = Complaint::parse(text);
  try {
    if (const auto differing = compare(place, text)) throw_on_all(*differing);
  } catch (const CommunicationError& error) {  // others are elsewhere in what this rank has not come through
    if (complaint) throw CommunicationError(complaint->why + "; " + error.what());
    throw;
  }
  if (complaint) complaint->fail("", is_whole_world());  // all have the same
}

std::unique_ptr<Collective> Communicator::Group::made_on_all(const std::string& label,
                                                             const std::function<std::unique_ptr<Collective>()>& make) {
  std::unique_ptr<Collective> made;
  try {
    require_same("having planned " + label, [&] {
      made = make();
      return std::string();
    });
  } catch (const CommunicationError&) {
    throw;
  } catch (...) {
    made.reset();
    renew_tags();
    throw;
  }
  return made;
}

void Communicator::Group::throw_on_all(const Differing& differing) const {
  const auto& places = differing.places;
  const auto& texts = differing.texts;
  const bool one_place = std::ranges::all_of(places, [&](const std::string& place) { return place == places[0]; });
  for (std::size_t rank = 0; rank < texts.size() && one_place; ++rank)
    if (const auto complaint = Complaint::parse(texts[rank]))
      complaint->fail(name_of_rank(rank) + ": ", is_whole_world());
  const auto told = [&](std::size_t rank) {
    const auto complaint = Complaint::parse(texts[rank]);
    return number_of_rank(rank) + " is at " + places[rank] + " (" + (complaint ? complaint->why : texts[rank]) + ")";
  };
  std::size_t other = 0;
  while (places[other] == places[0] && texts[other] == texts[0]) ++other;
  Complaint{Complaint::misuse, "the ranks disagree: " + told(0) + ", " + told(other)}.fail("", is_whole_world());
}

}  // namespace ronda
