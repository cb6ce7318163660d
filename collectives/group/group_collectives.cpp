// How a group plans everything besides the allreduce: along a tree what is short, in pieces over all links what is
// long.
#include <ronda/collectives/group/group.hpp>
#include <ronda/collectives/host/algorithms/binomial_tree.hpp>
#include <ronda/collectives/host/algorithms/exchange.hpp>
#include <ronda/collectives/host/algorithms/ring.hpp>
#include <ronda/collectives/host/algorithms/sequence.hpp>
#include <ronda/core/error.hpp>

#include <numeric>

namespace ronda {
namespace {

/// Up to here latencies decide, of which a tree has log2(n); above, the bytes that the root's link carries.
constexpr std::size_t short_for_a_tree = std::size_t{64} << 10;

using Counts = std::vector<std::size_t>;

std::string text_of(const Elements& elements) {
  return std::to_string(elements.count) + " " + std::string(name_of(elements.dtype));
}

std::string text_of(const Counts& counts) {
  std::string text;
  for (const std::size_t count : counts) text += (text.empty() ? "" : ", ") + std::to_string(count);
  return text;
}

std::size_t total(const Counts& counts) { return std::accumulate(counts.begin(), counts.end(), std::size_t{0}); }

/// `counts`, or if they are left out as many for each rank as `all` has or a rank's own part tells.
Counts complete(const Counts& counts, int ranks, std::size_t each, const std::string& label) {
  if (counts.empty()) return Counts(static_cast<std::size_t>(ranks), each);
  if (counts.size() == static_cast<std::size_t>(ranks)) return counts;
  throw LogicError(label + " has " + std::to_string(counts.size()) + " counts for " + std::to_string(ranks) + " ranks");
}

/// @param what  for the message
void require_count(const Elements& elements, std::size_t count, const std::string& label, const char* what) {
  if (elements.count == count) return;
  throw LogicError(label + ": " + what + " has " + text_of(elements) + ", its counts make " + std::to_string(count));
}

void require_type(const Elements& one, const Elements& other, const std::string& label) {
  if (one.dtype == other.dtype) return;
  throw LogicError(label + " is between " + text_of(one) + " and " + text_of(other) + "; both must be of one type");
}

/// Counts of an `all` that is shared out evenly where none are given.
Counts shares(const Counts& counts, const Elements& all, int ranks, const std::string& label) {
  Counts each = complete(counts, ranks, all.count / static_cast<std::size_t>(ranks), label);
  require_count(all, total(each), label, "the whole");
  return each;
}

std::vector<Range> ranges_of(const Counts& counts) {
  std::vector<Range> ranges;
  std::size_t begin = 0;
  for (const std::size_t count : counts) {
    ranges.push_back({begin, begin + count});
    begin += count;
  }
  return ranges;
}

/// As bytes, for algorithms that only carry them.
Elements raw(const Elements& elements) { return {elements.data, elements.bytes().size(), DType::uint8}; }

/// What a collective is called in records; `elements` as all ranks count them.
Description describe(Kind kind, const std::string& label, const Elements& elements, int root = -1,
                     ReduceOp op = ReduceOp::sum) {
  return {kind, label, {}, elements.count, elements.dtype, op, root};
}

/// The even parts of some bytes that a ring has.
std::vector<std::span<std::byte>> even_parts(const Elements& elements, int ranks) {
  std::vector<std::span<std::byte>> parts;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank)
    parts.push_back(elements.part(part_of(elements.count, rank, static_cast<std::size_t>(ranks))).bytes());
  return parts;
}

/// A message of two ranks alone. Pieces of several that are under way may pass one another: each has a tag of its own,
/// by the order in which they were started, which is the same on both ends. A receive that was given up before anything
/// came has taken no message: the next one gets its number.
class PairMessage final : public Algorithm {
 public:
  /// @param sequence  of what goes this way between the two
  PairMessage(std::unique_ptr<MpiTransport> transport, const Exchange::Message& message, bool outgoing,
              std::shared_ptr<PairSequence> sequence)
      : transport_(*transport),
        sequence_(std::move(sequence)),
        peer_(message.peer),
        receives_(!outgoing && !message.bytes.empty()),
        exchange_(std::move(transport), only(message, outgoing), only(message, !outgoing)) {}
  PairMessage(const PairMessage&) = delete;
  ~PairMessage() override {
    if (started_ && receives_ && transport_.received() < exchange_.pieces()) take_back_number();
  }

  Task run() override {
    if (sequence_->broken) return refuse();
    number_ = sequence_->started++;
    started_ = true;
    transport_.use(Tag(TagPool::of_message(number_)));
    return exchange_.run();
  }
  void prepare() override {
    exchange_.prepare();
    static_cast<void>(refuse());
  }
  void each_traffic(const std::function<void(Traffic&)>& look) override { exchange_.each_traffic(look); }

 private:
  static std::vector<Exchange::Message> only(const Exchange::Message& message, bool wanted) {
    return wanted ? std::vector{message} : std::vector<Exchange::Message>();
  }
  void take_back_number() noexcept {
    if (transport_.received() == 0 && number_ + 1 == sequence_->started)
      --sequence_->started;
    else
      sequence_->broken = true;
  }
  Task refuse() {
    throw CommunicationError("a receive from rank " + std::to_string(transport_.global_rank(peer_)) +
                             " was given up when part of its message had come, or a later receive was waiting: which "
                             "message is next cannot be known any more");
    co_return;
  }

  MpiTransport& transport_;
  std::shared_ptr<PairSequence> sequence_;
  int peer_;
  bool receives_, started_ = false;
  std::uint64_t number_ = 0;
  Exchange exchange_;
};

}  // namespace

std::unique_ptr<Collective> Communicator::Group::planned(std::unique_ptr<Algorithm> algorithm, std::string_view name,
                                                         Description description) {
  std::vector<std::unique_ptr<Algorithm>> algorithms;
  algorithms.push_back(std::move(algorithm));
  description.run.algorithm = name;
  return std::make_unique<PlannedCollective>(engine_, std::move(algorithms), name, description, ledger_,
                                             shared_from_this());
}

void Communicator::Group::require_rank(int rank, const std::string& label) const {
  if (rank < 0 || rank >= size_)
    throw LogicError(label + " names rank " + std::to_string(rank) + " of " + std::to_string(size_));
}

void Communicator::Group::require_other(int rank, const std::string& label) const {
  require_rank(rank, label);
  if (rank == rank_) throw LogicError(label + " is between rank " + std::to_string(rank) + " and itself; copy instead");
}

/// The root's parts to the ranks whose they are, or back. Only the root looks at `parts`.
std::unique_ptr<Algorithm> Communicator::Group::to_and_from_root(std::span<const std::span<std::byte>> parts,
                                                                 std::span<std::byte> mine, int root, bool gathers) {
  std::vector<Exchange::Message> of_root, of_others{{root, mine}};
  if (rank_ == root) of_root = messages_of(parts);
  return gathers ? std::make_unique<Exchange>(across_all(), of_others, of_root)
                 : std::make_unique<Exchange>(across_all(), of_root, of_others);
}

std::unique_ptr<Collective> Communicator::Group::plan(const BroadcastSpec& spec) {
  const Elements tensor = elements_of(spec.tensor);
  bool is_on_device = false;
  require_same("planning " + spec.label, [&] {
    require_rank(spec.root, spec.label);
    is_on_device = on_device({&spec.tensor, 1}, spec.label);
    return text_of(tensor) + " from " + std::to_string(spec.root) + place_of(is_on_device);
  });
  const Description description = describe(Kind::broadcast, spec.label, tensor, spec.root);
  return made_on_all(spec.label, [&]() -> std::unique_ptr<Collective> {
    if (is_on_device) return plan_on_device(spec, description);
    Made made = make_broadcast(raw(tensor), spec.root);
    return planned(std::move(made.algorithm), made.name, description);
  });
}

/// @param data  bytes
Communicator::Group::Made Communicator::Group::make_broadcast(const Elements& data, int root) {
  const std::size_t longest_for_a_tree = size_ <= 2 ? mpi::largest_message : short_for_a_tree;
  if (data.count <= longest_for_a_tree)
    return {std::make_unique<BinomialTree>(across_all(), data, root, BinomialTree::Direction::broadcast), "tree"};
  const auto parts = even_parts(data, size_);
  auto scatter = to_and_from_root(parts, parts[static_cast<std::size_t>(rank_)], root, false);
  auto allgather = std::make_unique<Ring>(across_all(), data, Reduction{}, RingPart::allgather);
  return {std::make_unique<Sequence>(std::move(scatter), std::move(allgather)), "scatter and ring"};
}

std::unique_ptr<Collective> Communicator::Group::plan(const ReduceSpec& spec) {
  const Elements data = elements_of(spec.tensor);
  require_same("planning " + spec.label, [&] {
    require_rank(spec.root, spec.label);
    require_on_host(spec.tensor, spec.label);
    require_sense(spec.op, data.dtype);
    return std::string(name_of(spec.op)) + " of " + text_of(data) + " to " + std::to_string(spec.root);
  });
  const Description description = describe(Kind::reduce, spec.label, data, spec.root, spec.op);
  return made_on_all(spec.label, [&]() -> std::unique_ptr<Collective> {
    const Reduction reduction{spec.op, size_};
    if (data.bytes().size() <= short_for_a_tree)
      return planned(
          std::make_unique<BinomialTree>(across_all(), data, spec.root, BinomialTree::Direction::reduce, reduction),
          "tree", description);
    auto reduce_scatter = std::make_unique<Ring>(across_all(), data, reduction, RingPart::reduce_scatter);
    const auto parts = even_parts(data, size_);
    auto gather = to_and_from_root(parts, parts[static_cast<std::size_t>(rank_)], spec.root, true);
    return planned(std::make_unique<Sequence>(std::move(reduce_scatter), std::move(gather)), "ring and gather",
                   description);
  });
}

void Communicator::Group::require_part(const Tensor* mine, const Tensor& all, const std::vector<std::size_t>& counts,
                                       const std::string& label) const {
  if (mine == nullptr) return;
  require_on_host(*mine, label);
  require_on_host(all, label);
  require_count(elements_of(*mine), counts[static_cast<std::size_t>(rank_)], label, "the part");
  require_type(elements_of(*mine), elements_of(all), label);
}

std::unique_ptr<Collective> Communicator::Group::plan(const ReduceScatterSpec& spec, const Tensor* mine) {
  const Elements all = elements_of(spec.all);
  Counts counts;
  bool is_on_device = false;
  require_same("planning " + spec.label, [&] {
    counts = shares(spec.counts, all, size_, spec.label);
    require_part(mine, spec.all, counts, spec.label);
    require_sense(spec.op, all.dtype);
    is_on_device = on_device({&spec.all, 1}, spec.label);
    return std::string(name_of(spec.op)) + " of " + text_of(all) + " in parts of " + text_of(counts) +
           place_of(is_on_device);
  });
  const Description description = describe(Kind::reduce_scatter, spec.label, all, -1, spec.op);
  return made_on_all(spec.label, [&]() -> std::unique_ptr<Collective> {
    if (is_on_device) return plan_on_device(spec, ranges_of(counts), description);
    return planned(std::make_unique<Ring>(across_all(), all, Reduction{spec.op, size_}, RingPart::reduce_scatter,
                                          ranges_of(counts)),
                   "ring", description);
  });
}

std::unique_ptr<Collective> Communicator::Group::plan(const AllgatherSpec& spec, const Tensor* mine) {
  const Elements all = elements_of(spec.all);
  Counts counts;
  bool is_on_device = false;
  require_same("planning " + spec.label, [&] {
    counts = shares(spec.counts, all, size_, spec.label);
    require_part(mine, spec.all, counts, spec.label);
    is_on_device = on_device({&spec.all, 1}, spec.label);
    return text_of(all) + " in parts of " + text_of(counts) + place_of(is_on_device);
  });
  const Description description = describe(Kind::allgather, spec.label, all);
  return made_on_all(spec.label, [&]() -> std::unique_ptr<Collective> {
    if (is_on_device) return plan_on_device(spec, ranges_of(counts), description);
    return planned(std::make_unique<Ring>(across_all(), all, Reduction{}, RingPart::allgather, ranges_of(counts)),
                   "ring", description);
  });
}

std::unique_ptr<Collective> Communicator::Group::plan_merge(std::span<std::byte> block, TreeMerge::Merge merge,
                                                            std::string_view label) {
  return planned(std::make_unique<TreeMerge>(across_all(), block, std::move(merge)), "tree",
                 {Kind::allgather, label, {}, block.size()});
}

std::unique_ptr<Collective> Communicator::Group::plan(const GatherSpec& spec) { return plan_at_root(spec, true); }
std::unique_ptr<Collective> Communicator::Group::plan(const ScatterSpec& spec) { return plan_at_root(spec, false); }

template <class Spec>
std::unique_ptr<Collective> Communicator::Group::plan_at_root(const Spec& spec, bool gathers) {
  const bool is_root = rank_ == spec.root;
  const Elements mine = elements_of(spec.mine), all = elements_of(spec.all);
  Counts counts;
  require_same("planning " + spec.label, [&] {
    require_rank(spec.root, spec.label);
    require_on_host(spec.mine, spec.label);
    require_on_host(spec.all, spec.label);
    counts = complete(spec.counts, size_, mine.count, spec.label);
    require_count(mine, counts[static_cast<std::size_t>(rank_)], spec.label, "the part");
    if (is_root) require_count(all, total(counts), spec.label, "the whole");
    if (is_root) require_type(mine, all, spec.label);
    return text_of(counts) + " " + std::string(name_of(mine.dtype)) + ", root " + std::to_string(spec.root);
  });
  std::vector<std::span<std::byte>> parts;
  if (is_root) parts = parts_of(all.bytes(), counts, size_of(all.dtype));
  const Description description{
      gathers ? Kind::gather : Kind::scatter, spec.label, {}, total(counts), mine.dtype, ReduceOp::sum, spec.root};
  return made_on_all(spec.label, [&]() -> std::unique_ptr<Collective> {
    return planned(to_and_from_root(parts, mine.bytes(), spec.root, gathers), "exchange", description);
  });
}

/// Every rank looks at its own pairs: what all have to say takes memory with the square of the ranks.
void Communicator::Group::require_matching(const std::vector<std::size_t>& sent,
                                           const std::vector<std::size_t>& received, const std::string& label) {
  const auto coming = together_in_mpi("planning " + label, [&] { return communicator_.alltoall(sent); });
  require_same("planning " + label, [&] {
    for (std::size_t from = 0; from < coming.size(); ++from)
      if (coming[from] != received[from])
        throw LogicError(label + ": " + number_of_rank(from) + " sends " + std::to_string(coming[from]) +
                         " elements to " + number_of_rank(static_cast<std::size_t>(rank_)) + ", which expects " +
                         std::to_string(received[from]));
    return std::string();
  });
}

std::unique_ptr<Collective> Communicator::Group::plan(const AlltoallSpec& spec) {
  const Elements outgoing = elements_of(spec.outgoing), incoming = elements_of(spec.incoming);
  Counts sent, received;
  require_same("planning " + spec.label, [&] {
    require_on_host(spec.outgoing, spec.label);
    require_on_host(spec.incoming, spec.label);
    require_apart({{spec.outgoing, spec.incoming}}, spec.label);
    sent = shares(spec.outgoing_counts, outgoing, size_, spec.label);
    received = shares(spec.incoming_counts, incoming, size_, spec.label);
    require_type(outgoing, incoming, spec.label);
    return std::string(name_of(outgoing.dtype));
  });
  require_matching(sent, received, spec.label);
  return made_on_all(spec.label, [&]() -> std::unique_ptr<Collective> {
    return planned(
        std::make_unique<Exchange>(across_all(), messages_of(parts_of(outgoing.bytes(), sent, size_of(outgoing.dtype))),
                                   messages_of(parts_of(incoming.bytes(), received, size_of(incoming.dtype)))),
        "exchange", Description(Kind::alltoall, spec.label, {}, 0, outgoing.dtype));  // counts are each rank's own
  });
}

std::shared_ptr<PairSequence> Communicator::Group::sequence_with(PairSequences& sequences, int rank) {
  auto& sequence = sequences[rank];
  if (sequence == nullptr) sequence = std::make_shared<PairSequence>();
  return sequence;
}

std::unique_ptr<Collective> Communicator::Group::plan(const SendSpec& spec) {
  require_other(spec.to, spec.label);
  require_on_host(spec.tensor, spec.label);
  const Exchange::Message message{spec.to, elements_of(spec.tensor).bytes()};
  auto algorithm =
      std::make_unique<PairMessage>(across(everybody_, Tag(0)), message, true, sequence_with(sent_, spec.to));
  return planned(std::move(algorithm), "exchange", describe(Kind::send, spec.label, elements_of(spec.tensor), spec.to));
}

std::unique_ptr<Collective> Communicator::Group::plan(const ReceiveSpec& spec) {
  require_other(spec.from, spec.label);
  require_on_host(spec.tensor, spec.label);
  const Exchange::Message message{spec.from, elements_of(spec.tensor).bytes()};
  auto algorithm =
      std::make_unique<PairMessage>(across(everybody_, Tag(0)), message, false, sequence_with(received_, spec.from));
  return planned(std::move(algorithm), "exchange",
                 describe(Kind::receive, spec.label, elements_of(spec.tensor), spec.from));
}

}  // namespace ronda
