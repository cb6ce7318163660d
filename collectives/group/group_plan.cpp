// How a group plans an allreduce: where do the tensors lie, what is each done by, what memory does that take?
#include <ronda/collectives/group/group.hpp>
#include <ronda/collectives/host/algorithms/hierarchical.hpp>
#include <ronda/collectives/host/algorithms/make_ring.hpp>
#include <ronda/collectives/host/algorithms/plain_mpi.hpp>
#include <ronda/collectives/host/algorithms/recursive_doubling.hpp>
#include <ronda/collectives/host/algorithms/recursive_halving.hpp>
#include <ronda/collectives/host/node/one_shot.hpp>
#include <ronda/collectives/host/node/two_shot.hpp>
#include <ronda/collectives/tuning/choice.hpp>
#include <ronda/collectives/tuning/compression_choice.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/random.hpp>

#include <algorithm>

namespace ronda {
namespace {

/// Up to here an allreduce in a node's memory is over so soon that looking at the clock twice would show.
constexpr std::size_t brief_bytes = std::size_t{16} << 10;

/// Whether any is reduced in memory that the ranks of a node share, which takes barriers.
bool needs_meetings(std::span<const AllreduceChoice> chosen, std::span<const Elements> tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].count > 0 &&
        (chosen[i].algorithm == AllreduceAlgorithm::node || chosen[i].algorithm == AllreduceAlgorithm::hierarchical))
      return true;
  return false;
}

/// Another one for each collective and each of its tensors.
Noise noise_of(const AllreduceSpec& spec, std::size_t tensor) {
  const auto bits = RngKey(spec.seed, Purpose::compression, spec.label).bits(tensor);
  return Noise(std::uint64_t{bits[0]} << 32 | bits[1]);
}

}  // namespace

/// What all ranks must give alike.
std::string Communicator::Group::words_of(const AllreduceSpec& spec) {
  std::string text = std::string(name_of(spec.op)) + " by " + std::string(name_of(spec.algorithm));
  for (const auto* tensors : {&spec.tensors, &spec.exact})
    for (const Tensor& tensor : *tensors)
      text += ", " + std::to_string(tensor.desc().padded_count()) + " " + std::string(name_of(tensor.dtype()));
  if (spec.compression != Compression::none)
    text += ", " + std::to_string(spec.tensors.size()) + " of them as " + std::string(name_of(spec.compression)) +
            " by seed " + std::to_string(spec.seed);
  return text;
}

std::unique_ptr<Collective> Communicator::Group::plan(const AllreduceSpec& spec, bool often) {
  std::vector<Tensor> tensors = spec.tensors;
  tensors.insert(tensors.end(), spec.exact.begin(), spec.exact.end());
  bool is_on_device = false;
  require_same("planning " + spec.label, [&] {
    is_on_device = on_device(tensors, spec.label);
    for (const Tensor& tensor : tensors) require_sense(spec.op, tensor.dtype());
    require_apart(tensors, spec.label);
    return words_of(spec) + place_of(is_on_device) + (costs_ ? ", link costs " + costs_->text() : "");
  });
  return made_on_all(spec.label, [&] {
    return is_on_device ? plan_on_device(spec, often) : plan_on_host(spec, often, shared_from_this());
  });
}

/// @param keeper  see PlannedCollective
std::unique_ptr<Collective> Communicator::Group::plan_on_host(const AllreduceSpec& spec, bool often,
                                                              std::shared_ptr<const void> keeper) {
  agreed_on_all([&] { require_fitting(spec.algorithm, DeviceKind::cpu); });
  MadeAllreduce made = make_allreduce(spec, often);
  std::erase(made.algorithms, nullptr);
  const bool brief = made.mostly == AllreduceAlgorithm::node && made.bytes <= brief_bytes;
  const std::string_view name = name_of(made.mostly);
  Description description{Kind::allreduce, spec.label, name, made.count, made.dtype, spec.op, -1, brief};
  description.idles = spec.idles;
  auto planned = std::make_unique<PlannedCollective>(engine_, std::move(made.algorithms), name, description, ledger_,
                                                     std::move(keeper), made.compression);
  planned->expect(made.seconds);
  planned->flush_denormals(spec.flush_denormals);
  return planned;
}

/// @param spec  of tensors on the host, the same on all ranks
Communicator::Group::MadeAllreduce Communicator::Group::make_allreduce(const AllreduceSpec& spec, bool often) {
  std::vector<Elements> tensors;
  for (const Tensor& tensor : spec.tensors) tensors.push_back(elements_of(tensor));
  for (const Tensor& tensor : spec.exact) tensors.push_back(elements_of(tensor));

  std::vector<Site> sites = locate(tensors);
  std::vector<AllreduceChoice> chosen = choose(spec, tensors, sites, often);
  std::shared_ptr<SharedMemory> shared_meetings;
  if (size_ > 1 && needs_meetings(chosen, tensors)) {
    std::string refusal;
    shared_meetings = meetings(tensors.size(), refusal);
    if (shared_meetings == nullptr && spec.algorithm != AllreduceAlgorithm::automatic)
      agreed_on_all([&] { throw ResourceError("no shared memory for the node's barriers: " + refusal); });
    if (shared_meetings == nullptr) {
      notes_.push_back("no shared memory for the node's barriers: " + refusal + "; " + spec.label +
                       " goes by messages");
      sites.assign(tensors.size(), Site());
      chosen = choose(spec, tensors, sites, often);
    }
  }
  std::vector<Wire> wires;
  std::size_t largest = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    wires.push_back({chosen[i].compression, noise_of(spec, i)});
    const bool speaks = i < spec.tensors.size() || tensors[largest].count == 0;  // what is exact only goes along
    if (speaks && tensors[i].count > tensors[largest].count) largest = i;
  }

  MadeAllreduce made;
  made.algorithms.resize(tensors.size());
  for (std::size_t i = 0; i < tensors.size() && size_ > 1; ++i)
    if (tensors[i].count > 0)
      made.algorithms[i] = make(chosen[i].algorithm, {spec.op, size_}, tensors[i],
                                copies_of(tensors[i], sites[i], shared_meetings, i), wires[i]);
  for (const Elements& elements : tensors) {
    made.count += elements.count;
    made.bytes += elements.bytes().size();
  }
  made.mostly = chosen.empty() ? spec.algorithm : chosen[largest].algorithm;
  if (tensors.empty()) return made;
  made.dtype = tensors[largest].dtype;
  made.compression = wires[largest].compression;
  made.seconds = chosen[largest].seconds;
  return made;
}

/// How each tensor is reduced. Measures the links first where that depends on them and they are not known.
std::vector<AllreduceChoice> Communicator::Group::choose(const AllreduceSpec& spec, std::span<const Elements> tensors,
                                                         std::span<const Site> sites, bool often) {
  std::vector<AllreduceChoice> chosen(tensors.size(), {spec.algorithm});
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Compression wanted = i < spec.tensors.size() ? spec.compression : Compression::none;
    AllreduceTask task{spec.algorithm, tensors[i].bytes().size(), sites[i].memory != nullptr};
    agreed_on_all([&] { task.compression = possible_compression(wanted, spec.algorithm, tensors[i], spec.op); });
    if (size_ == 1 || tensors[i].count == 0) continue;
    if (depends_on_costs(task, topology())) {
      link_costs();
      if (often) rehearse(task);
    }
    std::optional<CostModel> model;
    if (costs_) model.emplace(*costs_, placement_.ranks_of_node, often);
    agreed_on_all([&] { chosen[i] = choose_allreduce(task, topology(), model ? &*model : nullptr); });
  }
  return chosen;
}

std::unique_ptr<Algorithm> Communicator::Group::make(AllreduceAlgorithm algorithm, const Reduction& reduction,
                                                     const Elements& elements, NodeCopies copies, const Wire& wire) {
  switch (algorithm) {
    case AllreduceAlgorithm::node:
      if (elements.bytes().size() <= OneShot::largest_bytes)
        return std::make_unique<OneShot>(std::move(copies), reduction);
      return std::make_unique<TwoShot>(std::move(copies), reduction);
    case AllreduceAlgorithm::ring: return make_ring(across_all(), elements, reduction, wire);
    case AllreduceAlgorithm::halving:
      return std::make_unique<RecursiveHalving>(across_all(), elements, reduction, wire);
    case AllreduceAlgorithm::doubling:
      return std::make_unique<RecursiveDoubling>(across_all(), elements, reduction, wire);
    case AllreduceAlgorithm::hierarchical: {
      const int slices = topology().fewest_ranks_on_a_node;
      return std::make_unique<Hierarchical>(std::move(copies), reduction, slices, across_nodes(), wire);
    }
    case AllreduceAlgorithm::mpi:
    case AllreduceAlgorithm::nccl:
    case AllreduceAlgorithm::staged:
    case AllreduceAlgorithm::automatic: break;
  }
  return std::make_unique<PlainMpi>(plain_mpi(), *limits_.mpi_operations, elements, reduction);
}

/// MPI takes its own collectives of a communicator in one order on all ranks, whatever else these do over it.
const mpi::Communicator& Communicator::Group::plain_mpi() {
  if (plain_mpi_.size() == 0)
    plain_mpi_ = together_in_mpi("asking MPI for a communicator",
                                 [&] { return mpi::Communicator::duplicate(communicator_.handle()); });
  return plain_mpi_;
}

/// Asks all ranks where their part of each tensor is. A tensor has a site in shared memory where all of them took it
/// from the same `allocate`.
std::vector<Communicator::Group::Site> Communicator::Group::locate(std::span<const Elements> tensors) {
  struct Place {
    std::uint64_t allocation = 0;  ///< 0: memory that no other rank sees
    std::uint64_t offset = 0;      ///< in this rank's segment
  };
  std::vector<Site> sites(tensors.size());
  std::vector<Place> mine(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Allocation* allocation = allocation_of(tensors[i]);
    if (allocation == nullptr) continue;
    sites[i].memory = allocation->memory.lock();
    const std::byte* segment = sites[i].memory->segment(topology().rank_on_node).data();
    mine[i] = {allocation->number, static_cast<std::uint64_t>(tensors[i].data - segment)};
  }
  const auto on_node = together("planning: where tensors lie", [&] { return placement_.node.allgather(mine); });
  const auto place = [&](int rank, std::size_t i) {
    return on_node[static_cast<std::size_t>(rank) * tensors.size() + i];
  };
  // A bit of every number and of its inverse: both are 1 only where ranks have different numbers.
  std::vector<std::uint64_t> bits;
  for (const Place& one : mine) bits.insert(bits.end(), {one.allocation, ~one.allocation});
  together_in_mpi("planning: where tensors lie",
                  [&] { communicator_.combine_bits(std::as_writable_bytes(std::span(bits))); });
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (mine[i].allocation == 0 || (bits[2 * i] & bits[2 * i + 1]) != 0) sites[i].memory.reset();
    for (int rank = 0; rank < topology().ranks_on_node; ++rank) sites[i].offsets.push_back(place(rank, i).offset);
  }
  return sites;
}

std::vector<std::byte*> Communicator::Group::copies_on_node(const Elements& elements) {
  const Site site = locate({&elements, 1})[0];
  std::vector<std::byte*> copies;
  for (int rank = 0; site.memory != nullptr && rank < topology().ranks_on_node; ++rank)
    copies.push_back(site.memory->segment(rank).data() + site.offsets[static_cast<std::size_t>(rank)]);
  return copies;
}

const Communicator::Group::Allocation* Communicator::Group::allocation_of(const Elements& elements) const {
  for (const Allocation& allocation : allocations_) {
    const auto memory = allocation.memory.lock();
    if (memory == nullptr) continue;
    const auto segment = memory->segment(topology().rank_on_node);
    const auto bytes = elements.bytes();
    if (bytes.data() >= segment.data() && bytes.data() + bytes.size() <= segment.data() + segment.size())
      return &allocation;
  }
  return nullptr;
}

/// Each rank's lines for each tensor, taken together; nothing, on all ranks, where there is no room for them.
std::shared_ptr<SharedMemory> Communicator::Group::meetings(std::size_t tensors, std::string& refusal) {
  return share_memory(tensors * NodeCopies::lines_a_rank * sizeof(BarrierLine), 0, refusal);
}

NodeCopies Communicator::Group::copies_of(const Elements& elements, const Site& site,
                                          const std::shared_ptr<SharedMemory>& meetings, std::size_t index) const {
  NodeCopies copies;
  if (site.memory == nullptr || meetings == nullptr) return copies;
  copies.rank = topology().rank_on_node;
  copies.ranks = placement_.ranks_of_node[static_cast<std::size_t>(topology().node)];
  copies.count = elements.count;
  copies.dtype = elements.dtype;
  for (int rank = 0; rank < topology().ranks_on_node; ++rank) {
    copies.data.push_back(site.memory->segment(rank).data() + site.offsets[static_cast<std::size_t>(rank)]);
    copies.lines.push_back(reinterpret_cast<BarrierLine*>(meetings->segment(rank).data()) +
                           index * NodeCopies::lines_a_rank);
  }
  copies.keeper = std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(site.memory, meetings);
  return copies;
}

std::unique_ptr<MpiTransport> Communicator::Group::across(MpiTransport::Members members, Tag tag) const {
  return std::make_unique<MpiTransport>(communicator_.handle(), rank_, std::move(members), std::move(tag));
}

std::unique_ptr<Transport> Communicator::Group::across_all() { return across(everybody_, next_tag()); }

std::unique_ptr<Transport> Communicator::Group::across_nodes() {
  Tag tag = next_tag();  // on all ranks, so that they go on alike
  if (topology().rank_on_node >= topology().fewest_ranks_on_a_node) return nullptr;
  return across(std::make_shared<const std::vector<int>>(owners_of_slice(topology().rank_on_node)), std::move(tag));
}

/// The ranks of that number on their nodes, by node; nobody where a node has not so many.
std::vector<int> Communicator::Group::owners_of_slice(int slice) const {
  std::vector<int> owners;
  if (slice >= topology().fewest_ranks_on_a_node) return owners;
  for (const auto& ranks : placement_.ranks_of_node) owners.push_back(ranks[static_cast<std::size_t>(slice)]);
  return owners;
}

void Communicator::Group::renew_tags() {
  TagPool::InUse in_use = tags_->in_use();
  together_in_mpi("finding free tags",
                  [&] { communicator_.combine_bits(std::as_writable_bytes(std::span(&in_use, 1))); });
  tags_->renew(in_use);
}

/// Keeps apart the messages of collectives that are in flight together. All ranks plan in the same order.
Tag Communicator::Group::next_tag() {
  auto tag = tags_->take();
  if (!tag) {
    renew_tags();
    tag = tags_->take();
  }
  if (!tag) throw ResourceError("a group of ranks has as many planned collectives as MPI has tags; destroy some first");
  return {*tag, tags_};
}

}  // namespace ronda
