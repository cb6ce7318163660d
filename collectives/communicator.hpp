#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/collective.hpp>
#include <ronda/collectives/host_names.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

class DeviceContext;
class Recording;
struct LinkCosts;

/// What memory is for.
enum class Memory : std::uint8_t {
  per_rank,     ///< private to the rank
  node_shared,  ///< what reductions are fastest on: a mapping that the node's ranks share, where there is room for it
  /// A mapping that is the same memory for all ranks of the node, where there is room for it: each reads and writes
  /// all of it. For no collective of the node's ranks but a broadcast, since a rank's tensor is another's; across nodes
  /// one rank of each may take part.
  one_a_node,
  on_device,  ///< of this rank's device, known to what reduces it: see Communicator::use_device
};

/// Where the ranks of a communicator sit.
struct Topology {
  int nodes = 1;
  int node = 0;           ///< of this rank, counted in order of the lowest rank on it
  int ranks_on_node = 1;  ///< of this communicator, on this rank's node
  int rank_on_node = 0;
  int most_ranks_on_a_node = 1, fewest_ranks_on_a_node = 1;
  bool oversubscribed = false;  ///< some node has more ranks than cores for them, or RONDA_SHARED_CORES says so
  HostNames hosts;              ///< by rank
};

/// A group of ranks that reduce, copy and wait together. A handle: copies refer to the same group. Every function is
/// collective over the group unless it says otherwise: all ranks call the same ones in the same order. No destructor
/// is collective, so a rank that unwinds holds nobody up.
///
/// Errors: CommunicationError where MPI reports one; LogicError where ranks could be seen to disagree.
class Communicator {
 public:
  class Group;  ///< the implementation, over MPI
  explicit Communicator(std::shared_ptr<Group> group) : group_(std::move(group)) {}

  [[nodiscard]] int rank() const noexcept;                  ///< not collective
  [[nodiscard]] int size() const noexcept;                  ///< not collective
  [[nodiscard]] const Topology& topology() const noexcept;  ///< not collective

  /// Not collective: what follows belongs to this step of the caller's, for records and messages; 0: to none.
  void set_step(std::uint64_t step) const noexcept;

  /// Zeroed memory. Asks first, on all ranks together, whether the node's shared mapping has the room; where it has
  /// not, all ranks get private memory, and `take_notes()` says why.
  Buffer allocate(std::size_t bytes, Memory memory);

  /// From here on tensors on this rank's device can be planned for as well as the host's: all ranks have one each. A
  /// group that is split off begins without. `wanted` is automatic, nccl or staged; automatic is NCCL where the program
  /// has it and every rank has a GPU of its own, and through the host otherwise, for which `take_notes()` gives the
  /// reason. Throws InputError where what was asked for cannot be, CommunicationError where the ranks cannot be
  /// connected; on all ranks.
  void use_device(std::shared_ptr<DeviceContext> device, AllreduceAlgorithm wanted = AllreduceAlgorithm::automatic);

  /// Not collective: a line a rank, `rank 2 on node1: cuda:0, NVIDIA H200 (…), by nccl`; empty before use_device.
  [[nodiscard]] const std::vector<std::string>& devices() const noexcept;

  /// Not collective: what a device has recorded with collectives of this group inside, for the watchdog, which cannot
  /// look inside, to see: a replay counts as one collective of the name `what`, from where it begins in its stream to
  /// where it ends there. What is returned goes before the group's last handle does.
  [[nodiscard]] std::unique_ptr<Recording> watched(std::unique_ptr<Recording> recording, const std::string& what) const;
  /// Not collective: throws CommunicationError, with the reason, where the ranks' devices are no longer connected. Who
  /// has waited for a stream cannot tell otherwise whether collectives in it were done or given up.
  void require_devices() const;

  /// Where the ranks of this node have the same piece of memory from `allocate`, by rank on the node: for those who
  /// work in one another's. As long-lived as the buffer; empty where it is not shared. Of Memory::one_a_node all are
  /// one.
  [[nodiscard]] std::vector<std::byte*> copies_on_node(const Tensor& tensor);

  // What is done many times is planned once and started as often as one likes; `start` gives an event, so that several
  // can be in flight. Throws, on all ranks, where one of them makes a mistake (with its error, and its name), or where
  // they give different things (LogicError). An allreduce for once of up to 2 KiB is not worth comparing first: ranks
  // that give different counts get a CommunicationError, or stand still until the watchdog names them; different
  // operations are not noticed. Nor is one compared that was done before: where ranks differ, they stand still.

  /// Takes any of the specs of collective.hpp. Collective but for a SendSpec and a ReceiveSpec, which are the two
  /// ranks' alone. Throws InputError, on all ranks, where an allreduce's algorithm makes no sense for this layout or
  /// memory.
  std::unique_ptr<Collective> plan(const CollectiveSpec& spec);

  // On a device: allreduce, broadcast, allgather and reduce-scatter, of all tensors of one spec. There the device's
  // streams wait, not the host, and the event of `start` is one of theirs (but where it goes through the host: then
  // whoever waits is the host).

  // The same for once: planned, started and waited for. Any type, any count, also 0 and beyond 2^31. `counts` are
  // elements by rank; left out, all ranks have as many.

  /// Reduces in place on every rank. Up to 1 MiB what was planned for it is kept, with a copy of the tensor, for the
  /// next tensor of its count and type: the last 16 kinds of a group.
  void allreduce(const Tensor& tensor, ReduceOp op = ReduceOp::sum,
                 AllreduceAlgorithm algorithm = AllreduceAlgorithm::automatic);
  /// `tensor` of `root` replaces that of the others.
  void broadcast(const Tensor& tensor, int root = 0);
  /// `tensor` of `root` becomes what all ranks' reduce to; the others' are used as scratch.
  void reduce(const Tensor& tensor, int root = 0, ReduceOp op = ReduceOp::sum);
  /// `all` is everybody's `mine`, by rank.
  void allgather(const Tensor& mine, const Tensor& all, const std::vector<std::size_t>& counts = {});
  /// `mine` becomes what all ranks' part rank() of `all` reduces to; `all` is used as scratch.
  void reduce_scatter(const Tensor& all, const Tensor& mine, ReduceOp op = ReduceOp::sum,
                      const std::vector<std::size_t>& counts = {});
  /// `all` of `root` becomes everybody's `mine`, by rank; the other ranks need no `all`.
  void gather(const Tensor& mine, const Tensor& all, int root = 0, std::vector<std::size_t> counts = {});
  /// `mine` becomes part rank() of `all` of `root`; the other ranks need no `all`.
  void scatter(const Tensor& all, const Tensor& mine, int root = 0, std::vector<std::size_t> counts = {});
  /// Part r of `outgoing` on rank s becomes part s of `incoming` on rank r. The counts are this rank's own.
  void alltoall(const Tensor& outgoing, const Tensor& incoming, std::vector<std::size_t> outgoing_counts = {},
                std::vector<std::size_t> incoming_counts = {});
  /// Not collective: of two ranks, which must not be the same. What one sends another arrives in the order of starts.
  void send(const Tensor& tensor, int to);
  void receive(const Tensor& tensor, int from);  ///< likewise
  void barrier();

  /// Not collective: returns when `done`, which asks events of this group's collectives, says so: for who waits for any
  /// of several. It is asked again each time that something may have ended, and may start others. Throws what it
  /// throws; an event of what the watchdog has given up does.
  void wait_until(FunctionRef<bool()> done) const;

  /// A new group of the ranks that give the same colour, 0 or more, ordered by (key, rank).
  [[nodiscard]] Communicator split(int color, int key) const;

  /// What messages cost between these ranks, from which `automatic` chooses: measured on first use (a few tenths of a
  /// second where messages take milliseconds), which is in the first plan whose best algorithm depends on it. Groups
  /// that are split off afterwards have the same, and try nothing: they choose alike in every run with these costs.
  [[nodiscard]] const LinkCosts& link_costs() const;
  /// Takes what was measured before, by a group of the same ranks in the same places: nothing is measured then. The
  /// same on all ranks.
  void use_link_costs(LinkCosts costs);
  /// Not collective: null where nothing was measured or given.
  [[nodiscard]] const LinkCosts* known_link_costs() const noexcept;

  /// Every rank's text, by rank. For setting up, not for the step.
  [[nodiscard]] std::vector<std::string> gather_texts(std::string_view text) const;
  /// Rank `root`'s text.
  [[nodiscard]] std::string broadcast_text(std::string_view text, int root = 0) const;

  /// The implementation, for this room.
  [[nodiscard]] Group& group() const noexcept { return *group_; }

  /// Not collective: what `allocate` and `plan` fell back from, a line each, since the last call; empty on most days.
  [[nodiscard]] std::vector<std::string> take_notes();

 private:
  std::shared_ptr<Group> group_;
};

/// Runs `work` on every rank, then tells all how it went: where any rank threw, all ranks throw an *agreed* error that
/// names the lowest failing rank and carries its status and text. For start-up phases, in which any rank may meet a bad
/// file or run out of memory: nobody waits for one that has gone. `work` must call no collective that a failing rank
/// would miss. Collective.
void agree(const Communicator& communicator, const std::function<void()>& work);

/// Throws, on all ranks, an agreed InputError where the ranks' `text` differ; names the two ranks and the first line
/// that does. `what` says what the text describes ("the options", "the plan"). Collective, and safe where ranks are at
/// different places of the program: they see that `what` differs.
void require_equal(const Communicator& communicator, std::string_view what, std::string_view text);

}  // namespace ronda
