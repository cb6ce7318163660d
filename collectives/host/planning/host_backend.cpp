#include <ronda/collectives/host/algorithms/binomial_tree.hpp>
#include <ronda/collectives/host/algorithms/exchange.hpp>
#include <ronda/collectives/host/algorithms/ring.hpp>
#include <ronda/collectives/host/algorithms/sequence.hpp>
#include <ronda/collectives/host/algorithms/sparse_allreduce.hpp>
#include <ronda/collectives/host/algorithms/wide_mean.hpp>
#include <ronda/collectives/host/node/node_sparse_allreduce.hpp>
#include <ronda/collectives/host/planning/host_backend.hpp>
#include <ronda/collectives/members/spec_check.hpp>

#include <array>
#include <utility>

namespace ronda {
namespace {

/// Up to here latencies decide, of which a tree has log2(n); above, the bytes that the root's link carries.
constexpr std::size_t short_for_a_tree = std::size_t{64} << 10;

/// As bytes, for algorithms that only carry them.
Elements raw(const Elements& elements) { return {elements.data, elements.bytes().size(), DType::uint8}; }

/// The even parts of some bytes that a ring has.
std::vector<std::span<std::byte>> even_parts(const Elements& elements, int ranks) {
  std::vector<std::span<std::byte>> parts;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank)
    parts.push_back(elements.part(part_of(elements.count, rank, static_cast<std::size_t>(ranks))).bytes());
  return parts;
}

}  // namespace

std::unique_ptr<Collective> HostBackend::plan(const CollectiveSpec& spec, bool often) {
  return std::visit([&](const auto& one) { return planned(one, often); }, spec);
}

std::unique_ptr<Collective> HostBackend::planned(const AllreduceSpec& spec, bool often) {
  return allreduces_.plan(spec, often);
}

std::unique_ptr<Collective> HostBackend::planned(const BroadcastSpec& spec, bool /*often*/) {
  Made made = make_broadcast(raw(elements_of(spec.tensor)), spec.root);
  return links_.planned(std::move(made.algorithm), made.name, describe(spec));
}

HostBackend::Made HostBackend::make_broadcast(const Elements& data, int root) {
  const std::size_t longest_for_a_tree = members_.size() <= 2 ? longest_message : short_for_a_tree;
  if (data.count <= longest_for_a_tree)
    return {std::make_unique<BinomialTree>(links_.across_all(), data, root, BinomialTree::Direction::broadcast),
            "tree"};
  const auto parts = even_parts(data, members_.size());
  auto scatter = to_and_from_root(parts, parts[static_cast<std::size_t>(members_.rank())], root, false);
  auto allgather = std::make_unique<Ring>(links_.across_all(), data, Reduction{}, RingPart::allgather);
  return {std::make_unique<Sequence>(std::move(scatter), std::move(allgather)), "scatter and ring"};
}

std::unique_ptr<Collective> HostBackend::planned(const ReduceSpec& spec, bool /*often*/) {
  const Elements data = elements_of(spec.tensor);
  const Reduction reduction{spec.op, members_.size()};
  std::string_view name = "tree";
  auto algorithm = with_wide_mean(data, reduction, [&](const Elements& summed, const Reduction& by) {
    return make_reduce(summed, by, spec.root, name);
  });
  return links_.planned(std::move(algorithm), name, describe(spec));
}

std::unique_ptr<Algorithm> HostBackend::make_reduce(const Elements& data, const Reduction& reduction, int root,
                                                    std::string_view& name) {
  if (data.bytes().size() <= short_for_a_tree) {
    name = "tree";
    return std::make_unique<BinomialTree>(links_.across_all(), data, root, BinomialTree::Direction::reduce, reduction);
  }
  name = "ring and gather";
  auto reduce_scatter = std::make_unique<Ring>(links_.across_all(), data, reduction, RingPart::reduce_scatter);
  const auto parts = even_parts(data, members_.size());
  auto gather = to_and_from_root(parts, parts[static_cast<std::size_t>(members_.rank())], root, true);
  return std::make_unique<Sequence>(std::move(reduce_scatter), std::move(gather));
}

std::unique_ptr<Collective> HostBackend::planned(const ReduceScatterSpec& spec, bool /*often*/) {
  const Elements data = elements_of(spec.all);
  const auto make = [&](const Elements& summed, const Reduction& reduction) -> std::unique_ptr<Algorithm> {
    std::vector<std::size_t> counts = spec.counts;
    if (summed.data != data.data)
      for (std::size_t& count : counts) count *= WideMean::words(data.dtype);
    return std::make_unique<Ring>(links_.across_all(), summed, reduction, RingPart::reduce_scatter, ranges_of(counts));
  };
  auto collective = links_.planned(with_wide_mean(data, {spec.op, members_.size()}, make), "ring", describe(spec));
  collective->flush_denormals(spec.flush_denormals);
  return collective;
}

std::unique_ptr<Collective> HostBackend::planned(const AllgatherSpec& spec, bool /*often*/) {
  return links_.planned(std::make_unique<Ring>(links_.across_all(), elements_of(spec.all), Reduction{},
                                               RingPart::allgather, ranges_of(spec.counts)),
                        "ring", describe(spec));
}

/// The root's parts to the ranks that they belong to, or back. Only the root looks at `parts`.
std::unique_ptr<Algorithm> HostBackend::to_and_from_root(std::span<const std::span<std::byte>> parts,
                                                         std::span<std::byte> mine, int root, bool gathers) {
  std::vector<Exchange::Message> of_root, of_others{{root, mine}};
  if (members_.rank() == root) of_root = messages_of(parts);
  return gathers ? std::make_unique<Exchange>(links_.across_all(), of_others, of_root)
                 : std::make_unique<Exchange>(links_.across_all(), of_root, of_others);
}

std::unique_ptr<Collective> HostBackend::planned(const GatherSpec& spec, bool /*often*/) {
  return planned_at_root(spec, true);
}

std::unique_ptr<Collective> HostBackend::planned(const ScatterSpec& spec, bool /*often*/) {
  return planned_at_root(spec, false);
}

template <class Spec>
std::unique_ptr<Collective> HostBackend::planned_at_root(const Spec& spec, bool gathers) {
  const Elements mine = elements_of(spec.mine), all = elements_of(spec.all);
  std::vector<std::span<std::byte>> parts;
  if (members_.rank() == spec.root) parts = parts_of(all.bytes(), spec.counts, size_of(all.dtype));
  return links_.planned(to_and_from_root(parts, mine.bytes(), spec.root, gathers), "exchange", describe(spec));
}

std::unique_ptr<Collective> HostBackend::planned(const AlltoallSpec& spec, bool /*often*/) {
  const auto messages = [](const Tensor& tensor, const std::vector<std::size_t>& counts) {
    const Elements elements = elements_of(tensor);
    return messages_of(parts_of(elements.bytes(), counts, size_of(elements.dtype)));
  };
  return links_.planned(std::make_unique<Exchange>(links_.across_all(), messages(spec.outgoing, spec.outgoing_counts),
                                                   messages(spec.incoming, spec.incoming_counts)),
                        "exchange", describe(spec));
}

std::unique_ptr<Collective> HostBackend::planned(const SendSpec& spec, bool /*often*/) {
  return planned_pair(Kind::send, spec.tensor, spec.to, spec.label, sent_);
}

std::unique_ptr<Collective> HostBackend::planned(const ReceiveSpec& spec, bool /*often*/) {
  return planned_pair(Kind::receive, spec.tensor, spec.from, spec.label, received_);
}

std::unique_ptr<Collective> HostBackend::planned(const SparseAllreduceSpec& spec, bool /*often*/) {
  Made made = make_sparse_allreduce(spec);
  auto collective = links_.planned(std::move(made.algorithm), made.name, describe(spec));
  collective->flush_denormals(true);
  return collective;
}

HostBackend::Made HostBackend::make_sparse_allreduce(const SparseAllreduceSpec& spec) {
  const auto width = static_cast<std::size_t>(spec.table.shape()[1]);
  const bool in_memory = spec.algorithm == AllreduceAlgorithm::automatic || spec.algorithm == AllreduceAlgorithm::node;
  if (in_memory && members_.size() > 1 && members_.topology().nodes == 1) {
    const std::array places{elements_of(spec.table), elements_of(Tensor(spec.touched->memory()))};
    const auto sites = memory_.locate(places);
    std::string refusal;
    const auto barriers = memory_.take_barriers(places.size(), refusal);
    NodeCopies tables = memory_.copies_of(places[0], sites[0], barriers, 0),
               lists = memory_.copies_of(places[1], sites[1], barriers, 1);
    if (!tables.data.empty() && !lists.data.empty())
      return {std::make_unique<NodeSparseAllreduce>(std::move(tables), std::move(lists), width, *spec.touched), "node"};
  }
  return {std::make_unique<SparseAllreduce>(links_.across_all(), spec.table.pointer<float>(), width, *spec.touched),
          "owners"};
}

std::unique_ptr<Collective> HostBackend::planned_pair(Kind kind, const Tensor& tensor, int peer,
                                                      const std::string& label, PairSequences& sequences) {
  auto& sequence = sequences[peer];
  if (sequence == nullptr) sequence = std::make_shared<PairSequence>();
  const Elements elements = elements_of(tensor);
  return links_.planned(
      std::make_unique<PairMessage>(links_, Exchange::Message{peer, elements.bytes()}, kind == Kind::send, sequence),
      "exchange", {kind, label, {}, elements.count, elements.dtype, ReduceOp::sum, peer});
}

}  // namespace ronda
