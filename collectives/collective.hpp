#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <ronda/collectives/compression.hpp>
#include <ronda/collectives/reduce_op.hpp>
#include <ronda/core/state.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

/// Algorithm of an allreduce. `automatic` chooses by the ranks' placement and the size. Algorithms without an
/// enumerator of their own have numbers from `first_other` and are selected by name: see allreduce_names.
enum class AllreduceAlgorithm : std::uint8_t {
  automatic,
  node,              ///< ranks of one node only: in shared memory, in two phases (one phase for small data)
  ring,              ///< segmented, pipelined ring of messages; any placement of ranks
  halving,           ///< recursive halving and doubling (Rabenseifner), by messages; at most 1 GiB
  doubling,          ///< recursive doubling, by messages: for the shortest data; at most 1 GiB
  hierarchical,      ///< `node` inside each node, one ring per slice between nodes
  mpi,               ///< MPI_Iallreduce on a copy; the reference
  nccl,              ///< NCCL; for tensors on GPUs
  staged,            ///< through host memory, by the best algorithm there; for tensors on GPUs
  first_other = 16,  ///< direct; the next new algorithm takes 17
};
/// `auto`, and the names of the algorithms for this kind of memory; all names without `device`.
[[nodiscard]] std::vector<std::string_view> allreduce_names(std::optional<DeviceKind> device = {});
/// The algorithm with one of these names. Throws InputError, which lists them.
[[nodiscard]] AllreduceAlgorithm parse_allreduce(std::string_view name);
[[nodiscard]] std::string_view name_of(AllreduceAlgorithm algorithm) noexcept;

/// An allreduce to run many times. All tensors, of any types, are reduced together, in place. Every rank gives the same
/// counts and types in the same order.
struct AllreduceSpec {
  std::vector<Tensor> tensors;
  ReduceOp op = ReduceOp::sum;
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::automatic;
  std::string label = "an allreduce";  ///< for messages: `bucket 3`
  /// Compression of the messages for `tensors`, which must then be float32; only for a sum or a mean. Data in a node's
  /// shared memory is never compressed. All ranks get the same bits with compression too.
  Compression compression = Compression::none;
  std::uint64_t seed = 1;          ///< for stochastic rounding
  std::vector<Tensor> exact = {};  ///< reduced together with `tensors`, never compressed
  /// Treats denormal numbers as zero, for gradients of a training: see DenormalScope. If false, denormal numbers are
  /// kept, also within a training step, unless the program itself has set its threads to flush them.
  bool flush_denormals = false;
  /// Runs repeatedly even while the program is idle: the record keeps only the last of several consecutive runs.
  bool idles = false;
};

/// Throws InputError if `algorithm` is for another kind of memory than that of `device`: host or GPU.
void require_fitting(AllreduceAlgorithm algorithm, DeviceKind device);

// The other collectives. All ranks give equal specs, except for the tensors' addresses and where a spec states
// otherwise. `counts` are elements per rank, by rank; if empty, all ranks have equally many.

/// Copies `tensor` of `root` to all other ranks.
struct BroadcastSpec {
  Tensor tensor;
  int root = 0;
  std::string label = "a broadcast";
};

/// Reduces `tensor` over all ranks into that of `root`. The other ranks' tensors are used as scratch.
struct ReduceSpec {
  Tensor tensor;
  int root = 0;
  ReduceOp op = ReduceOp::sum;
  std::string label = "a reduce";
};

/// Reduces `all` over all ranks: rank r gets the result in its own part r. Its other parts are used as scratch.
struct ReduceScatterSpec {
  Tensor all;
  ReduceOp op = ReduceOp::sum;
  std::vector<std::size_t> counts = {};
  std::string label = "a reduce-scatter";
  bool flush_denormals = false;  ///< see AllreduceSpec
};

/// Copies part r of `all` from rank r to all other ranks, for each r.
struct AllgatherSpec {
  Tensor all;
  std::vector<std::size_t> counts = {};
  std::string label = "an allgather";
};

/// Copies `mine` of rank r to part r of `all` on `root`. Other ranks need no `all`.
struct GatherSpec {
  Tensor mine, all;
  int root = 0;
  std::vector<std::size_t> counts = {};
  std::string label = "a gather";
};

/// Copies part r of `all` on `root` to `mine` of rank r. Other ranks need no `all`.
struct ScatterSpec {
  Tensor all, mine;
  int root = 0;
  std::vector<std::size_t> counts = {};
  std::string label = "a scatter";
};

/// Copies part r of `outgoing` on rank s to part s of `incoming` on rank r. The counts may differ per rank: the
/// elements that this rank sends to, and receives from, each rank. The two tensors must not overlap, except that a
/// rank's part for itself may already be in place.
struct AlltoallSpec {
  Tensor outgoing, incoming;
  std::vector<std::size_t> outgoing_counts = {}, incoming_counts = {};
  std::string label = "an alltoall";
};

/// Sends `tensor` to one other rank, which plans a receive of the same size. Collective over these two ranks only.
/// Messages from one rank to another arrive in the order in which the sender starts them. At most 8192 may be in flight
/// in each direction.
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

/// Sums `table` (rows, width), float32, over all ranks. On each rank it must be zero outside its touched rows.
/// `touched` becomes the union of all ranks' touched rows, in the same order on all ranks. Only these rows are sent;
/// each run may touch other rows. Denormal numbers are treated as zero, as the tables are gradients of a training.
struct SparseAllreduceSpec {
  Tensor table;
  TouchedRows* touched = nullptr;  ///< of `table`; outlives the collective
  /// `automatic` and `node` use the node's shared memory if all ranks are on one node and the table and its list of
  /// rows lie in shared memory. Otherwise, and with any other algorithm, rows are sent as messages.
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::automatic;
  std::string label = "a sparse allreduce";
};

using CollectiveSpec = std::variant<AllreduceSpec, BroadcastSpec, ReduceSpec, ReduceScatterSpec, AllgatherSpec,
                                    GatherSpec, ScatterSpec, AlltoallSpec, SendSpec, ReceiveSpec, SparseAllreduceSpec>;

/// Duration of a collective's runs in seconds, from the time its tensors are ready to the end.
struct CollectiveTimes {
  /// Predicted duration of one run by the cost model; empty without a prediction: see Communicator::link_costs.
  std::optional<double> predicted;
  /// Total of all runs so far, measured on this rank. For brief collectives extrapolated from one run in 16.
  double total = 0;
  std::uint64_t runs = 0;
};

/// A planned collective. Planning allocates its memory, messages and coroutine frames, so that `start` allocates
/// nothing.
///
/// The tensors' memory may be freed once the event of the last run is done or has thrown, or once this object is
/// destroyed. Destroying a collective in flight aborts the run. If other ranks do not receive its sent messages within
/// half a second, the World fails: collectives of all its ranks then throw CommunicationError. If MPI has delivered all
/// its sent messages, ranks that wait for further ones wait for `communication_timeout`.
class Collective : public Completion {
 public:
  virtual ~Collective() = default;
  /// Starts a run as soon as `ready` is done. Collective: all ranks start the same collectives in the same order.
  /// Several collectives may be in flight, but only one run of each. The tensors belong to the collective until the
  /// returned event is done.
  virtual Event start(const Event& ready = {}) = 0;
  /// Whether a started run completes without the host. If so, its events need no polling, and the run can be captured
  /// in a device's graph.
  [[nodiscard]] virtual bool moves_alone() const noexcept { return false; }
  /// Name of the algorithm, for reports: `node`, `ring`, `tree`, …
  [[nodiscard]] virtual std::string_view algorithm() const noexcept = 0;
  /// Compression of the messages; with several tensors, that of the largest.
  [[nodiscard]] virtual Compression compression() const noexcept { return Compression::none; }
  /// Bytes of host memory that this rank holds in addition to the tensors: for compression, or for tensors of a device.
  [[nodiscard]] virtual std::size_t memory() const noexcept { return 0; }
  /// Bytes that this rank has sent in messages so far. For sparse tables, also the bytes written for other ranks in
  /// shared memory. 0 if MPI's own collectives or a device send them. Not to be called while a run is in flight.
  [[nodiscard]] virtual std::uint64_t sent_bytes() const noexcept { return 0; }
  /// Visits the state that the next run depends on: for int8, int4 and 2bit the accumulated rounding errors and the
  /// number of runs. Restoring it gives bitwise equal results after a restart.
  virtual void visit(StateVisitor& /*visitor*/) {}
  /// Not to be called while a run is in flight.
  [[nodiscard]] virtual CollectiveTimes times() const noexcept = 0;
};

}  // namespace ronda
