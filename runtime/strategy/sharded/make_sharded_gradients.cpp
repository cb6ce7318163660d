#include <ronda/core/error.hpp>
#include <ronda/core/repeated_memory.hpp>
#include <ronda/runtime/strategy/replica/arena_memory.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/sharded/sharded_gradients.hpp>
#include <ronda/runtime/strategy/replica/shared_values.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace ronda {
namespace {

/// Bytes of a bucket where nobody says how many: larger ones take more memory, smaller ones more meetings.
constexpr std::size_t usual_bucket = std::size_t{256} << 10;

float* shared_floats(std::byte* memory) { return reinterpret_cast<float*>(memory); }
Tensor whole_tensor(const Buffer& memory) {
  return Tensor(std::span(shared_floats(memory.data()), memory.bytes() / sizeof(float)));
}

/// Bytes of the largest share.
std::size_t largest_share(std::size_t elements, int ranks) {
  return std::ranges::max(share_sizes(elements, static_cast<std::size_t>(ranks))) * sizeof(float);
}

/// The ring and this rank's share of the sums, where the ranks of the one node reach those of all.
struct OnNode {
  Buffer ring, share;
  std::vector<const float*> rings;  ///< by rank; empty: ranks have no such memory in common
  std::vector<float*> shares;       ///< likewise
};

/// Of this rank's share, as if it were part of an arena of all gradients.
ArenaPlace place_of_sums(const Replica& replica) {
  return place_behind(ArenaPlace::gradients, replica.kept().begin * sizeof(float));
}

OnNode take_on_node(Communicator& communicator, const GradientRing& ring, const Replica& replica, EventSink& sink) {
  OnNode memory;
  if (communicator.topology().nodes > 1) return memory;
  memory.ring = communicator.allocate(ring.memory.memory(), Memory::node_shared);
  auto notes = communicator.take_notes();
  if (notes.empty()) {
    memory.share = allocate_arena(place_of_sums(replica), largest_share(replica.plan().elements(), communicator.size()),
                                  communicator, Memory::node_shared);
    notes = communicator.take_notes();
  }
  for (const auto& note : notes) sink.on_message(Severity::warning, note);
  if (!notes.empty()) return {};
  const auto rings = communicator.copies_on_node(whole_tensor(memory.ring)),
             shares = communicator.copies_on_node(whole_tensor(memory.share));
  if (rings.empty() || shares.empty()) return {};
  for (std::byte* place : rings) memory.rings.push_back(shared_floats(place));
  for (std::byte* place : shares) memory.shares.push_back(shared_floats(place));
  return memory;
}

/// Values for ranks that write into one another's copies, or into the one of their node.
Buffer take_values(Communicator& communicator, const ReplicaPlan& plan, const OnNode& memory, bool one_copy,
                   DeviceContext& context) {
  if (one_copy) return allocate_on_node(communicator, ArenaPlace::values, plan.arena_bytes, Memory::one_a_node);
  if (!memory.rings.empty())
    return allocate_arena(ArenaPlace::values, plan.arena_bytes, communicator, Memory::node_shared);
  Buffer values;
  agree(communicator, [&] { values = allocate_arena(ArenaPlace::values, plan.arena_bytes, context); });
  return values;
}

/// This rank's share of the others' copies.
std::vector<float*> copies_of_share(Communicator& communicator, const Replica& replica) {
  std::vector<float*> copies;
  for (std::byte* place : communicator.copies_on_node(whole_tensor(replica.values())))
    if (place != replica.values().data()) copies.push_back(shared_floats(place) + replica.kept().begin);
  return copies;
}

/// Whether an update can write to all ranks' values. The same on all ranks.
bool reaches_all_values(Communicator& communicator, const Replica& replica) {
  return communicator.topology().nodes == 1 && !communicator.copies_on_node(whole_tensor(replica.values())).empty();
}

void give_arenas(Communicator& communicator, Replica& replica, const GradientRing& ring, const OnNode& memory,
                 bool one_copy) {
  Buffer values = take_values(communicator, replica.plan(), memory, one_copy, *replica.device().context), gradients;
  static_cast<void>(communicator.take_notes());  // without memory in common new parameters are sent, as the plan says
  agree(communicator, [&] {
    gradients = memory.rings.empty() ? repeated_memory(ring.memory) : repeat(memory.ring.data(), ring.memory);
  });
  replica.take_arenas(std::move(values), std::move(gradients), {});
}

/// The ranks of a node have the same values, and the same average of them.
void share_values(Communicator& communicator, Replica& replica, bool keeps_average) {
  Buffer average = allocate_on_node(communicator, ArenaPlace::average, keeps_average ? replica.plan().arena_bytes : 0,
                                    Memory::one_a_node);
  const Topology& topology = communicator.topology();
  replica.share_values(std::move(average),
                       share_of_rank(replica.plan().elements(), static_cast<std::size_t>(topology.rank_on_node),
                                     static_cast<std::size_t>(topology.ranks_on_node)));
}

std::unique_ptr<BucketSums> make_bucket_sums(const Communicator& communicator, const Replica& replica,
                                             const GradientRing& ring, const OnNode& memory, const Buffer& share) {
  const std::size_t elements = replica.plan().elements();
  const int threads = replica.stream().threads();
  if (!memory.rings.empty())
    return std::make_unique<NodeBucketSums>(communicator, ring, memory.rings, memory.shares, elements, threads);
  return std::make_unique<MessageBucketSums>(communicator, ring, shared_floats(replica.gradients().data()),
                                             std::span(shared_floats(share.data()), replica.kept().size()), elements,
                                             threads);
}

std::unique_ptr<NewValues> make_new_values(Communicator& communicator, const Replica& replica, bool written) {
  if (written) return std::make_unique<WrittenValues>(communicator);
  if (replica.shares_values()) return std::make_unique<GatheredOneCopy>(communicator, replica);
  return std::make_unique<GatheredValues>(communicator, replica);
}

}  // namespace

GradientRing ring_of(const Replica& replica, const FusionOptions& options) {
  const auto writes = replica.program().gradient_writes();
  const bool asked_for = options.bucket_bytes != FusionOptions{}.bucket_bytes;
  return {replica.plan().slots, replica.plan().arena_bytes, writes, asked_for ? options.bucket_bytes : usual_bucket};
}

std::size_t bytes_of_sharded_gradients(const Replica& replica, const FusionOptions& options, int ranks) {
  return ring_of(replica, options).memory.memory() + largest_share(replica.plan().elements(), ranks);
}

void require_sharded_gradients(const ReplicaPlan& plan, const Optimizer& optimizer, const FusionOptions& options) {
  const auto refuse = [](const Message& why, const Message& remedy) {
    throw InputError(why + ", and with " + setting("shard_gradients") +
                     " a rank has the sums of its own part alone; leave that out" + remedy);
  };
  if (plan.mixed()) refuse("layers write gradients of " + std::string(name_of(plan.dtype)), ", or take float32");
  if (optimizer.needs_norms())
    refuse("optimizer " + std::string(optimizer.name()) + " needs the norms of whole gradients",
           ", or take another optimizer");
  if (options.compression != Compression::none)
    refuse("compressed gradients are summed by an allreduce (" + setting("compression") + ")",
           ", or take " + setting("compression", "none"));
  if (options.algorithm != AllreduceAlgorithm::automatic && options.algorithm != AllreduceAlgorithm::node &&
      options.algorithm != AllreduceAlgorithm::ring)
    refuse(setting("allreduce", name_of(options.algorithm)) + " sums gradients on all ranks",
           ", or take " + setting("allreduce", "auto") + ", node or ring");
}

std::unique_ptr<GradientExchange> make_sharded_gradients(Communicator& communicator, Replica& replica,
                                                         const FusionOptions& options, bool one_copy,
                                                         bool keeps_average, EventSink& sink) {
  const GradientRing ring = ring_of(replica, options);
  OnNode memory;
  if (options.algorithm != AllreduceAlgorithm::ring) memory = take_on_node(communicator, ring, replica, sink);
  give_arenas(communicator, replica, ring, memory, one_copy);
  if (one_copy) share_values(communicator, replica, keeps_average);
  Buffer share = std::move(memory.share);
  if (memory.rings.empty())
    agree(communicator, [&] {
      share = allocate_arena(place_of_sums(replica), replica.kept().size() * sizeof(float), *replica.device().context);
    });
  auto sums = make_bucket_sums(communicator, replica, ring, memory, share);
  const bool written = reaches_all_values(communicator, replica);
  auto copies = written ? copies_of_share(communicator, replica) : std::vector<float*>{};
  auto values = make_new_values(communicator, replica, written);
  return std::make_unique<ShardedGradients>(
      communicator, ShardedGradients::Parts{replica, ring, std::move(sums), std::move(memory.ring), std::move(share),
                                            std::move(copies), std::move(values)});
}

}  // namespace ronda
