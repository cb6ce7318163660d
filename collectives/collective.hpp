#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <ronda/collectives/compression.hpp>
#include <ronda/collectives/reduce_op.hpp>
#include <ronda/core/event.hpp>
#include <ronda/core/state.hpp>
#include <ronda/core/tensor.hpp>
#include <ronda/core/touched_rows.hpp>

namespace ronda {

/// How an allreduce is done. `automatic` chooses by placement and size. Other algorithms have numbers from
/// `first_other` on, and are known by name: see allreduce_names.
enum class AllreduceAlgorithm : std::uint8_t {
  automatic,
  node,              ///< in the node's shared memory, by two shots, or by one where it is little; all ranks on one node
  ring,              ///< segmented pipelined ring over messages; any layout of ranks
  halving,           ///< recursive halving and doubling (Rabenseifner's), over messages; 1 GiB at most
  doubling,          ///< recursive doubling over messages: for the shortest; 1 GiB at most
  hierarchical,      ///< `node` inside each node, a ring a slice across nodes
  mpi,               ///< MPI_Iallreduce, on a copy; the reference
  nccl,              ///< by NCCL; for tensors on GPUs
  staged,            ///< through the host's memory, by what is best there; for tensors on GPUs
  first_other = 16,  ///< direct; the next new algorithm takes 17
};
/// `auto` and the algorithms for one kind of memory, or for any.
[[nodiscard]] std::vector<std::string_view> allreduce_names(std::optional<DeviceKind> device = {});
/// By one of these names. Throws InputError that lists them.
[[nodiscard]] AllreduceAlgorithm parse_allreduce(std::string_view name);
[[nodiscard]] std::string_view name_of(AllreduceAlgorithm algorithm) noexcept;

/// An allreduce that will be done many times. All tensors, of any types, are reduced in place, together; every rank
/// gives the same counts and types in the same order.
struct AllreduceSpec {
  std::vector<Tensor> tensors;
  ReduceOp op = ReduceOp::sum;
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::automatic;
  std::string label = "an allreduce";  ///< for messages: `bucket 3`
  /// Of what is sent of `tensors`, which are float32 then; a sum or a mean. What stays in a node's memory is never
  /// compressed. All ranks get the same bits all the same.
  Compression compression = Compression::none;
  std::uint64_t seed = 1;          ///< of stochastic rounding
  std::vector<Tensor> exact = {};  ///< reduced together with `tensors`, and never compressed
  /// Takes denormal numbers for zero, as training's gradients: see DenormalScope. Else they are summed as they are,
  /// within a training's step, too, unless the program itself has set its threads otherwise.
  bool flush_denormals = false;
  /// Goes on while nothing happens: of runs with nothing between them, the record has the last alone.
  bool idles = false;
};

/// Tensors in the host's memory cannot be reduced by what is for those of a device, nor the other way round. Throws
/// InputError that says so.
void require_fitting(AllreduceAlgorithm algorithm, DeviceKind device);

// Besides the allreduce. All ranks give the same of everything but the tensors' places, unless it says otherwise.
// `counts` are elements by rank; left out, all ranks have as many.

/// `tensor` of `root` replaces that of the others.
struct BroadcastSpec {
  Tensor tensor;
  int root = 0;
  std::string label = "a broadcast";
};

/// `tensor` of `root` becomes what all ranks' reduce to; the others' are used as scratch.
struct ReduceSpec {
  Tensor tensor;
  int root = 0;
  ReduceOp op = ReduceOp::sum;
  std::string label = "a reduce";
};

/// Rank r's part of `all`, on rank r, becomes what all ranks' reduce to; the other parts are used as scratch.
struct ReduceScatterSpec {
  Tensor all;
  ReduceOp op = ReduceOp::sum;
  std::vector<std::size_t> counts = {};
  std::string label = "a reduce-scatter";
  bool flush_denormals = false;  ///< as AllreduceSpec's
};

/// Rank r's part of `all` on rank r replaces that of the others.
struct AllgatherSpec {
  Tensor all;
  std::vector<std::size_t> counts = {};
  std::string label = "an allgather";
};

/// `mine` of rank r becomes rank r's part of `all` on `root`; the other ranks need no `all`.
struct GatherSpec {
  Tensor mine, all;
  int root = 0;
  std::vector<std::size_t> counts = {};
  std::string label = "a gather";
};

/// Rank r's part of `all` on `root` becomes `mine` of rank r; the other ranks need no `all`.
struct ScatterSpec {
  Tensor all, mine;
  int root = 0;
  std::vector<std::size_t> counts = {};
  std::string label = "a scatter";
};

/// Part r of `outgoing` on rank s becomes part s of `incoming` on rank r. The counts are each rank's own: what it sends
/// to, and receives from, each rank. The two tensors lie apart, but that a rank's part for itself may lie where it is
/// to be.
struct AlltoallSpec {
  Tensor outgoing, incoming;
  std::vector<std::size_t> outgoing_counts = {}, incoming_counts = {};
  std::string label = "an alltoall";
};

/// `tensor` goes to one other rank, which receives as much from this one. Of these two ranks alone; what goes from one
/// to the other arrives in the order in which it is started there. Up to 8192 each way may be in flight.
struct SendSpec {
  Tensor tensor;
  int to = 0;
  std::string label = "a send";
};
struct ReceiveSpec {
  Tensor tensor;
  int from = 0;
  std::string label = "a receive";
};

/// `table` (rows, width), float32, on each rank zero but for its touched rows, becomes the sum of all ranks'; `touched`
/// becomes the rows that any rank had, in the same order on all ranks. Only these rows travel; which they are may
/// differ from run to run. Takes denormal numbers for zero, as it is for training's gradients.
struct SparseAllreduceSpec {
  Tensor table;
  TouchedRows* touched = nullptr;  ///< of this table; outlives the collective
  /// `automatic` and `node`: in the node's memory, where all ranks are on one and table and list are in what they
  /// share; else, and by any other, by messages.
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::automatic;
  std::string label = "a sparse allreduce";
};

using CollectiveSpec = std::variant<AllreduceSpec, BroadcastSpec, ReduceSpec, ReduceScatterSpec, AllgatherSpec,
                                    GatherSpec, ScatterSpec, AlltoallSpec, SendSpec, ReceiveSpec, SparseAllreduceSpec>;

/// How long a collective's runs take, in seconds: from where its tensors are ready to its end.
struct CollectiveTimes {
  std::optional<double> predicted;  ///< by the cost model, where there is one: see Communicator::link_costs
  double total = 0;                 ///< of the runs so far, as measured here; of brief ones, as one in 16 was
  std::uint64_t runs = 0;
};

/// A planned collective. Its memory, messages and coroutine frames were set up when it was planned, so that starting it
/// allocates nothing.
///
/// The tensors' memory may be freed when the event of the last run is done, or has thrown, or this object is gone. One
/// that is destroyed under way is given up: where other ranks do not take what it has sent within half a second, the
/// world is over, and collectives of any of its ranks throw CommunicationError. Where MPI has passed on all that it has
/// sent, who waits for the rest of it waits for `communication_timeout`.
class Collective : public Completion {
 public:
  virtual ~Collective() = default;
  /// Starts once `ready` has happened. Collective: all ranks start the same collectives in the same order; several may
  /// be in flight, but one only once at a time. The tensors belong to the collective until the returned event is done.
  virtual Event start(const Event& ready = {}) = 0;
  /// Whether it goes on without the host, once started: then nobody need ask its events, and a device's graph may have
  /// it inside.
  [[nodiscard]] virtual bool moves_alone() const noexcept { return false; }
  /// What it is done by, for reports: `node`, `ring`, `tree`, …
  [[nodiscard]] virtual std::string_view algorithm() const noexcept = 0;
  /// What its numbers are sent as: those of its largest tensor, if there are several.
  [[nodiscard]] virtual Compression compression() const noexcept { return Compression::none; }
  /// Bytes of the host that this rank keeps beside the tensors: for compression, or for tensors of a device.
  [[nodiscard]] virtual std::size_t memory() const noexcept { return 0; }
  /// Bytes that this rank has sent in messages so far; of sparse tables also what it has written for others in a node's
  /// memory. 0 where MPI's own collectives or a device do it. Not while it is in flight.
  [[nodiscard]] virtual std::uint64_t sent_bytes() const noexcept { return 0; }
  /// Shows what of one run the next builds on: for int8, int4 and 2bit what rounding has lost so far, and how many runs
  /// there were. Equal continuation needs it.
  virtual void visit(StateVisitor& /*visitor*/) {}
  /// Not while it is in flight.
  [[nodiscard]] virtual CollectiveTimes times() const noexcept = 0;
};

}  // namespace ronda
