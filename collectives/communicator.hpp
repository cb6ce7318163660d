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
#include <ronda/core/message.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

class Clock;
class DeviceContext;
class Recording;
struct LinkCosts;

/// Kinds of memory that Communicator::allocate returns.
enum class Memory : std::uint8_t {
  per_rank,     ///< private to the rank
  node_shared,  ///< a mapping shared by the node's ranks, for the fastest reductions; private memory if it does not fit
  /// One copy per node, which all ranks of the node read and write; private memory if it does not fit. A broadcast is
  /// the only collective in which several ranks of one node may use it, since their tensors are the same memory. For
  /// other collectives, one rank per node may take part.
  one_a_node,
  on_device,  ///< memory of this rank's device, registered for its collectives: see Communicator::use_device
};

/// Placement of a communicator's ranks on nodes.
struct Topology {
  int nodes = 1;
  int node = 0;           ///< this rank's node; nodes are numbered in the order of their lowest ranks
  int ranks_on_node = 1;  ///< ranks of this communicator on this rank's node
  int rank_on_node = 0;
  int most_ranks_on_a_node = 1, fewest_ranks_on_a_node = 1;
  bool oversubscribed = false;  ///< some node has more ranks than cores for them, or RONDA_SHARED_CORES is above 0
  HostNames hosts;              ///< by rank
};

/// A group of ranks that reduce, copy and wait together. A handle: copies refer to the same group. Every function is
/// collective over the group unless stated otherwise: all ranks call the same ones in the same order. Destructors are
/// not collective, so a rank that unwinds its stack blocks no other.
///
/// Errors: CommunicationError if MPI reports an error; LogicError if ranks are found to disagree.
class Communicator {
 public:
  class Group;  ///< the implementation, over MPI
  explicit Communicator(std::shared_ptr<Group> group) : group_(std::move(group)) {}

  [[nodiscard]] int rank() const noexcept;                  ///< not collective
  [[nodiscard]] int size() const noexcept;                  ///< not collective
  [[nodiscard]] const Topology& topology() const noexcept;  ///< not collective
  /// Not collective: the time by which its world waits and decides.
  [[nodiscard]] const Clock& clock() const noexcept;

  /// Not collective: sets the training step that records and messages name from now on; 0: none.
  void set_step(std::uint64_t step) const noexcept;

  /// Returns zeroed memory. All ranks first check together that shared memory has enough room on their node; otherwise
  /// all ranks get private memory, and `take_notes()` gives the reason.
  Buffer allocate(std::size_t bytes, Memory memory);

  /// Lets this group plan collectives for tensors on this rank's device, in addition to host memory. All ranks have one
  /// device each. Groups made by `split` start without a device. `wanted` is automatic, nccl or staged; automatic
  /// selects NCCL if the program is built with it and every rank has a GPU of its own, and otherwise staging through
  /// host memory, for which `take_notes()` gives the reason. Throws, on all ranks, InputError if `wanted` is
  /// impossible, CommunicationError if the ranks cannot be connected.
  void use_device(std::shared_ptr<DeviceContext> device, AllreduceAlgorithm wanted = AllreduceAlgorithm::automatic);

  /// Not collective: one line per rank, `rank 2 on node1: cuda:0, NVIDIA H200 (…), by nccl`; empty before use_device.
  [[nodiscard]] const std::vector<std::string>& devices() const noexcept;

  /// Not collective: wraps a device's recording that contains collectives of this group, so that the watchdog can
  /// monitor it. Each replay counts as one collective named `what`, from its start to its end in the stream. The
  /// returned object must be destroyed before the group's last handle.
  [[nodiscard]] std::unique_ptr<Recording> watched(std::unique_ptr<Recording> recording, const std::string& what) const;
  /// Not collective: throws CommunicationError, with the reason, if the ranks' devices have been disconnected. Call it
  /// after synchronising a stream: otherwise aborted collectives in it look like completed ones.
  void require_devices() const;

  /// Addresses of the corresponding memory of all ranks of this node, by rank on the node, for direct access to it.
  /// `tensor` lies in memory from `allocate`. Valid as long as the buffer; empty if the memory is not shared. For
  /// Memory::one_a_node all addresses are equal.
  [[nodiscard]] std::vector<std::byte*> copies_on_node(const Tensor& tensor);

  // `plan` sets up a collective once, for any number of runs; `start` returns an event, so that several can be in
  // flight. Planning throws on all ranks: the error of a rank whose arguments are invalid, with the rank's number, or
  // LogicError if the ranks' arguments differ. Two kinds of one-off allreduces skip this comparison. Up to 2 KiB, ranks
  // that give different counts get a CommunicationError, or block until the watchdog reports them; different operations
  // are not detected. If a plan is reused, ranks whose arguments differ block until the watchdog reports them.

  /// Plans any of the specs of collective.hpp. Collective, except that a SendSpec or a ReceiveSpec concerns only its
  /// two ranks. Throws InputError, on all ranks, if an allreduce's algorithm does not fit the ranks' placement or the
  /// memory.
  std::unique_ptr<Collective> plan(const CollectiveSpec& spec);

  // On a device: allreduce, broadcast, allgather and reduce-scatter; all tensors of a spec are on the device. The
  // device's streams wait, not the host, and `start` returns an event of the device. With staging through host memory
  // the host waits.

  // One-off collectives: planned, started and waited for in one call. Any type, any count, including 0 and more than
  // 2^31. `counts` are elements per rank, by rank; if empty, all ranks have equally many.

  /// Reduces in place on every rank. Up to 1 MiB, the plan is kept, with a copy of the tensor, for the next call with
  /// the same count, type, operation and algorithm. A group keeps the last 16 plans.
  void allreduce(const Tensor& tensor, ReduceOp op = ReduceOp::sum,
                 AllreduceAlgorithm algorithm = AllreduceAlgorithm::automatic);
  /// Copies `tensor` of `root` to all other ranks.
  void broadcast(const Tensor& tensor, int root = 0);
  /// Reduces `tensor` over all ranks into that of `root`. The other ranks' tensors are used as scratch.
  void reduce(const Tensor& tensor, int root = 0, ReduceOp op = ReduceOp::sum);
  /// Concatenates `mine` of all ranks, by rank, in `all`.
  void allgather(const Tensor& mine, const Tensor& all, const std::vector<std::size_t>& counts = {});
  /// Reduces part rank() of `all` over all ranks into `mine`. `all` is used as scratch.
  void reduce_scatter(const Tensor& all, const Tensor& mine, ReduceOp op = ReduceOp::sum,
                      const std::vector<std::size_t>& counts = {});
  /// Concatenates `mine` of all ranks, by rank, in `all` of `root`. Other ranks need no `all`.
  void gather(const Tensor& mine, const Tensor& all, int root = 0, std::vector<std::size_t> counts = {});
  /// Copies part rank() of `all` of `root` to `mine`. Other ranks need no `all`.
  void scatter(const Tensor& all, const Tensor& mine, int root = 0, std::vector<std::size_t> counts = {});
  /// Copies part r of `outgoing` on rank s to part s of `incoming` on rank r. The counts are those of this rank.
  void alltoall(const Tensor& outgoing, const Tensor& incoming, std::vector<std::size_t> outgoing_counts = {},
                std::vector<std::size_t> incoming_counts = {});
  /// Not collective: involves this rank and rank `to`, which must differ. Messages from one rank to another arrive in
  /// the order of their starts.
  void send(const Tensor& tensor, int to);
  void receive(const Tensor& tensor, int from);  ///< not collective, as `send`
  void barrier();

  /// Not collective: waits until `done` returns true, for callers that wait for any of several events of this group's
  /// collectives. `done` is called again after each possible completion, and may start collectives. Its exceptions are
  /// passed on; an event throws if the watchdog has aborted its collective.
  void wait_until(FunctionRef<bool()> done) const;

  /// Returns a new group of the ranks that give the same colour, 0 or more, ordered by (key, rank).
  [[nodiscard]] Communicator split(int color, int key) const;

  /// Costs of messages between these ranks, by which `automatic` chooses. Measured on first use, which is the first
  /// plan whose best algorithm depends on them; takes a few tenths of a second if a message takes milliseconds. Groups
  /// split off afterwards inherit the costs and time no algorithms, so that every run with the same costs makes the
  /// same choices.
  [[nodiscard]] const LinkCosts& link_costs() const;
  /// Sets costs that a group of the same ranks in the same places has measured earlier; then nothing is measured. All
  /// ranks give the same costs.
  void use_link_costs(LinkCosts costs);
  /// Not collective: null before costs are measured or set.
  [[nodiscard]] const LinkCosts* known_link_costs() const noexcept;

  /// Returns the texts of all ranks, by rank. For set-up, not for use in a step.
  [[nodiscard]] std::vector<std::string> gather_texts(std::string_view text) const;
  /// Returns the text of rank `root`.
  [[nodiscard]] std::string broadcast_text(std::string_view text, int root = 0) const;

  /// The implementation, for this library's own modules.
  [[nodiscard]] Group& group() const noexcept { return *group_; }

  /// Not collective: one line for each fallback of `allocate`, `plan` and `use_device` since the last call; usually
  /// empty.
  [[nodiscard]] std::vector<Message> take_notes();

 private:
  std::shared_ptr<Group> group_;
};

/// Runs `work` on every rank, then exchanges the outcomes. If any rank threw, all ranks throw an *agreed* error with
/// the number of the lowest failing rank, its status and its text. For start-up phases, where a rank may meet a bad
/// file or run out of memory: no rank then waits for a failed one. `work` must not call a collective that a failing
/// rank would miss. Collective.
void agree(const Communicator& communicator, const std::function<void()>& work);

/// Throws, on all ranks, an agreed InputError if `text` differs between ranks; the error names two ranks and the first
/// line that differs. `what` names the text ("the options", "the plan"). Collective, and safe if ranks are at different
/// places in the program: the error is then that `what` differs.
void require_equal(const Communicator& communicator, const Message& what, std::string_view text);

}  // namespace ronda
