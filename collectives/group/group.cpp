#include <ronda/collectives/group/group.hpp>
#include <ronda/collectives/host/algorithms/allreduce/doubling.hpp>
#include <ronda/collectives/host/algorithms/wide_mean.hpp>
#include <ronda/collectives/members/spec_check.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>

#include <algorithm>
#include <utility>

namespace ronda {

Communicator::Group::Group(Assembly& founding, const GroupLimits& limits, Ledger ledger)
    : members_(std::make_shared<Members>(founding, limits, std::move(ledger))),
      agreement_(*members_),
      links_(members_, agreement_),
      memory_(*members_, agreement_),
      host_(*members_, agreement_, links_, memory_),
      kept_(*members_, agreement_, links_, memory_, host_.allreduces()) {}

Buffer Communicator::Group::allocate(std::size_t bytes, Memory memory) {
  if (memory != Memory::on_device) return memory_.allocate(bytes, memory);
  agreement_.require_same("allocate", [&] {
    if (devices_ == nullptr)
      throw LogicError("memory was asked for on a device that the communicator was not told of: use_device");
    return std::to_string(bytes) + " bytes of the device's";
  });
  return devices_->allocate(bytes);
}

void Communicator::Group::use_device(std::shared_ptr<DeviceContext> context, AllreduceAlgorithm wanted,
                                     const std::shared_ptr<nccl::Library>& library) {
  agreement_.require_same("use_device", name_of(wanted));
  require_fitting(wanted, DeviceKind::cuda);
  devices_ = std::make_unique<GroupDevices>(GroupDevices::Parts{members_, agreement_, links_, memory_, host_},
                                            std::move(context), wanted, library);
}

std::vector<std::byte*> Communicator::Group::copies_on_node(const Elements& elements) {
  return memory_.places_of(memory_.locate({&elements, 1})[0]);
}

SpecContext Communicator::Group::context() const {
  SpecContext context{members_->rank(), members_->size(), {}};
  if (devices_ != nullptr) context.device = devices_->device();
  return context;
}

std::unique_ptr<Collective> Communicator::Group::plan(CollectiveSpec spec, bool often, const Tensor* mine) {
  const auto complete_here = [&] { return std::visit([&](auto& one) { return complete(one, context()); }, spec); };
  if (std::holds_alternative<SendSpec>(spec) || std::holds_alternative<ReceiveSpec>(spec)) {
    static_cast<void>(complete_here());
    return host_.plan(spec, often);
  }
  const std::string label = label_of(spec);
  agreement_.require_same("planning " + label, [&] {
    std::string words = complete_here();
    if (!std::holds_alternative<BroadcastSpec>(spec))
      for (const Tensor& tensor : tensors_of(spec)) memory_.require_own(elements_of(tensor), label);
    if (const auto* allgather = std::get_if<AllgatherSpec>(&spec); allgather != nullptr && mine != nullptr)
      require_part(*mine, allgather->all, allgather->counts, context(), label);
    if (const auto* scatter = std::get_if<ReduceScatterSpec>(&spec); scatter != nullptr && mine != nullptr)
      require_part(*mine, scatter->all, scatter->counts, context(), label);
    const auto& costs = host_.allreduces().known_costs();
    if (std::holds_alternative<AllreduceSpec>(spec) && costs) words += ", link costs " + costs->text();
    return words;
  });
  if (const auto* alltoall = std::get_if<AlltoallSpec>(&spec)) require_matching(*alltoall);
  Backend& backend = is_on_device(spec) ? devices_->backend() : host_;
  return links_.made_on_all(label, [&] { return backend.plan(spec, often); });
}

/// Every rank looks at its own pairs: what all have to say takes memory with the square of the ranks.
void Communicator::Group::require_matching(const AlltoallSpec& spec) {
  const std::string what = "planning " + spec.label;
  const auto coming = agreement_.together(what, [&] { return members_->all().alltoall(spec.outgoing_counts); });
  agreement_.require_same(what, [&] {
    for (std::size_t from = 0; from < coming.size(); ++from)
      if (coming[from] != spec.incoming_counts[from])
        throw LogicError(spec.label + ": " + members_->number_of_rank(from) + " sends " + std::to_string(coming[from]) +
                         " elements to " + members_->number_of_rank(static_cast<std::size_t>(members_->rank())) +
                         ", which expects " + std::to_string(spec.incoming_counts[from]));
    return std::string();
  });
}

std::unique_ptr<Collective> Communicator::Group::plan_merge(std::span<std::byte> block, TreeMerge::Merge merge,
                                                            std::string_view label) {
  return links_.planned(std::make_unique<TreeMerge>(links_.across_all(), block, std::move(merge)), "tree",
                        {Kind::allgather, label, {}, block.size()});
}

void Communicator::Group::allreduce_now(const Tensor& tensor, ReduceOp op) {
  const Elements data = elements_of(tensor);
  agreement_.check_here("an allreduce", [&] {
    require_sense(op, tensor.dtype());
    require_memory(tensor, "an allreduce");
    memory_.require_own(data, "an allreduce");
  });
  auto algorithm =
      with_wide_mean(data, {op, members_->size()},
                     [&](const Elements& summed, const Reduction& reduction) -> std::unique_ptr<Algorithm> {
                       return std::make_unique<RecursiveDoubling>(links_.across_all(), summed, reduction);
                     });
  links_.planned(std::move(algorithm), "doubling", {Kind::allreduce, "an allreduce", {}, data.count, data.dtype, op})
      ->start()
      .wait();
}

void Communicator::Group::barrier() {
  agreement_.together("a barrier", [&] { members_->all().barrier(); });
}

std::shared_ptr<Communicator::Group> Communicator::Group::split(int color, int key) {
  agreement_.require_same("splitting the group", [&] {
    if (color < 0) throw LogicError("the color " + std::to_string(color) + " of a split is less than 0");
    return std::string();
  });
  auto part = agreement_.together("splitting the group", [&] {
    struct Place {
      int color, key;
    };
    const std::vector<Place> places = members_->all().gather(Place{color, key});
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < places.size(); ++rank)
      if (places[rank].color == color) ranks.push_back(static_cast<int>(rank));
    std::ranges::stable_sort(ranks, {}, [&](int rank) { return places[static_cast<std::size_t>(rank)].key; });
    const Ranks world_ranks = members_->world_ranks(ranks);
    // Groups of one origin are told apart by their colour, others by where they were split off.
    const Ledger& ledger = members_->ledger();
    const Hash identity = Hash().add(ledger.group).add(ledger.number).add(static_cast<std::uint64_t>(color));
    Assembly founding = members_->all().of(world_ranks);
    return std::make_shared<Group>(founding, members_->limits(),
                                   Ledger{ledger.recorder, identity.value(), 0, *world_ranks});
  });
  part->host_.allreduces().inherit(host_.allreduces().known_costs());
  return part;
}

// ---- agreements of a communicator -----------------------------------------------------------------------------------

void agree(const Communicator& communicator, const std::function<void()>& work) {
  communicator.group().agreement().run(work);
}

void require_equal(const Communicator& communicator, const Message& what, std::string_view text) {
  communicator.group().agreement().require_equal(what, text);
}

}  // namespace ronda
