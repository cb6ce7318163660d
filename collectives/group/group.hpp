#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/group/meeting.hpp>
#include <ronda/collectives/group/placement.hpp>
#include <ronda/collectives/host/algorithms/link_probe.hpp>
#include <ronda/collectives/host/algorithms/plain_mpi.hpp>
#include <ronda/collectives/host/algorithms/tree_merge.hpp>
#include <ronda/collectives/host/engine/engine.hpp>
#include <ronda/collectives/host/engine/planned_collective.hpp>
#include <ronda/collectives/host/node/copies.hpp>
#include <ronda/collectives/host/node/shared_memory.hpp>
#include <ronda/collectives/host/reduction.hpp>
#include <ronda/collectives/host/transport/mpi_transport.hpp>
#include <ronda/collectives/host/transport/mpi_turn.hpp>
#include <ronda/collectives/host/transport/tags.hpp>
#include <ronda/collectives/host/transport/transport.hpp>
#include <ronda/collectives/host/wire_format.hpp>
#include <ronda/collectives/link_costs.hpp>
#include <ronda/collectives/nccl/clique.hpp>
#include <ronda/collectives/nccl/lanes.hpp>
#include <ronda/collectives/nccl/nccl_library.hpp>
#include <ronda/collectives/staged/staged.hpp>
#include <ronda/collectives/tuning/choice.hpp>
#include <ronda/collectives/watch/recorder.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

/// What a world decides for all groups in it.
struct GroupLimits {
  std::shared_ptr<const MpiOperations> mpi_operations;
  int ranks_per_node = 0;  ///< see WorldOptions
  std::size_t shared_memory = std::numeric_limits<std::size_t>::max();
  bool oversubscribed = false;
  bool any_thread = false;  ///< MPI may be called by any thread, one at a time; the same on all ranks
  int world_size = 1;
  std::uint64_t priority = 0;  ///< of this world before others of the same processes: see MpiTurn::reserve
};

/// Messages of two ranks alone, one way.
struct PairSequence {
  std::uint64_t started = 0;
  bool broken = false;  ///< which one is next is not known
};

/// What MPI may still want of the shared memory file system for its own queues.
inline constexpr std::size_t kept_for_mpi = std::size_t{16} << 20;

/// A group of ranks over MPI: what a Communicator is a handle of.
class Communicator::Group : public std::enable_shared_from_this<Group> {
 public:
  /// Collective over `communicator`, as are all functions that do not say otherwise.
  Group(std::shared_ptr<Engine> engine, mpi::Communicator communicator, const GroupLimits& limits, Ledger ledger);
  Group(const Group&) = delete;
  ~Group();  ///< not collective

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] const Topology& topology() const noexcept { return placement_.topology; }
  [[nodiscard]] bool any_thread() const noexcept { return limits_.any_thread; }
  /// `rank 2`, as it is called in the world, of this group's rank of that number. Not collective.
  [[nodiscard]] std::string number_of_rank(std::size_t rank) const;
  [[nodiscard]] std::string name_of_rank(std::size_t rank) const;  ///< likewise `rank 2 on node17`
  [[nodiscard]] bool is_whole_world() const noexcept { return size_ == limits_.world_size; }

  Buffer allocate(std::size_t bytes, Memory memory);
  void use_device(std::shared_ptr<DeviceContext> context, AllreduceAlgorithm wanted,
                  const std::shared_ptr<nccl::Library>& library);
  [[nodiscard]] const std::vector<std::string>& devices() const noexcept { return device_lines_; }  ///< not collective
  [[nodiscard]] std::unique_ptr<Recording> watched(std::unique_ptr<Recording> recording,
                                                   const std::string& what) const;  ///< not collective
  void require_devices() const;                                                     ///< not collective
  [[nodiscard]] std::vector<std::byte*> copies_on_node(const Elements& elements);
  /// @param often  worth trying what is nearly equal
  std::unique_ptr<Collective> plan(const AllreduceSpec& spec, bool often = true);
  std::unique_ptr<Collective> plan(const BroadcastSpec& spec);
  std::unique_ptr<Collective> plan(const ReduceSpec& spec);
  /// @param mine  where this rank's part goes to, or comes from, if that is not in `all`: it must fit, on the host
  std::unique_ptr<Collective> plan(const ReduceScatterSpec& spec, const Tensor* mine = nullptr);
  std::unique_ptr<Collective> plan(const AllgatherSpec& spec, const Tensor* mine = nullptr);
  std::unique_ptr<Collective> plan(const GatherSpec& spec);
  std::unique_ptr<Collective> plan(const ScatterSpec& spec);
  std::unique_ptr<Collective> plan(const AlltoallSpec& spec);
  std::unique_ptr<Collective> plan(const SendSpec& spec);     ///< not collective
  std::unique_ptr<Collective> plan(const ReceiveSpec& spec);  ///< not collective
  /// Every rank's `block`, of the same length, becomes what `merge` makes of them all: see TreeMerge. For this room;
  /// not compared.
  std::unique_ptr<Collective> plan_merge(std::span<std::byte> block, TreeMerge::Merge merge, std::string_view label);
  [[nodiscard]] std::shared_ptr<Group> split(int color, int key);
  /// Null: nothing is written down.
  [[nodiscard]] const std::shared_ptr<Recorder>& recorder() const noexcept { return ledger_.recorder; }
  [[nodiscard]] Ledger& ledger() noexcept { return ledger_; }
  [[nodiscard]] double timeout() const noexcept { return engine_->timeout(); }
  /// Null: nobody watches.
  [[nodiscard]] const std::shared_ptr<Watchdog>& watchdog() const noexcept { return engine_->watchdog(); }
  /// From here on one thread alone may use this group, and all others of its world. Not collective.
  [[nodiscard]] std::shared_ptr<Engine::Claim> claim() { return std::make_shared<Engine::Claim>(engine_); }
  void add_note(std::string note) { notes_.push_back(std::move(note)); }       ///< not collective
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }  ///< not collective

  void allreduce_now(const Tensor& tensor, ReduceOp op);  ///< without looking whether all give the same
  /// Whether it is worth keeping the plan of an allreduce for once, which all ranks answer alike. Not collective.
  [[nodiscard]] bool keeps(const Tensor& tensor) const;
  /// By a plan that is kept, on a copy of the tensor in the plan's own memory. Compares only what is new.
  void allreduce_kept(const Tensor& tensor, ReduceOp op, AllreduceAlgorithm algorithm);
  void barrier();
  [[nodiscard]] std::vector<std::string> gather_texts(std::string_view text);
  [[nodiscard]] std::string broadcast_text(std::string_view text, int root);

  /// Measured now, if they are not known.
  const LinkCosts& link_costs();
  [[nodiscard]] const std::optional<LinkCosts>& known_link_costs() const noexcept { return costs_; }
  void use_link_costs(LinkCosts costs) { costs_ = std::move(costs); }  ///< not collective

  /// What the ranks say where they do not all say the same.
  struct Differing {
    std::vector<std::string> places, texts;
  };
  /// Nothing where `place` (of the program) and `text` are the same on all ranks, which costs one small exchange.
  [[nodiscard]] std::optional<Differing> compare(std::string_view place, std::string_view text);

 private:
  /// Memory from `allocate`; all ranks give the same memory the same number.
  struct Allocation {
    std::uint64_t number;
    std::weak_ptr<SharedMemory> memory;
  };
  /// Where a tensor lies on this rank's node.
  struct Site {
    std::shared_ptr<SharedMemory> memory;  ///< null unless it is in shared memory on all ranks of the group
    std::vector<std::uint64_t> offsets;    ///< in the segments of the node's ranks
  };

  /// An allreduce for once that may come again. All ranks find the same ones here, because none of this is a rank's
  /// own.
  struct Kept {
    std::size_t count;
    DType dtype;
    ReduceOp op;
    AllreduceAlgorithm algorithm;
    Buffer memory;
    std::unique_ptr<Collective> plan;  ///< goes before the memory
  };
  static constexpr std::size_t most_kept = 16;
  [[nodiscard]] Kept make_kept(const Tensor& tensor, ReduceOp op, AllreduceAlgorithm algorithm);

  /// This rank's device, where it uses one.
  struct OnDevice {
    std::shared_ptr<DeviceLanes> lanes;
    std::shared_ptr<nccl::Clique> clique;  ///< null: through the host
    std::string refusal;                   ///< why not by NCCL
  };
  /// How a collective is done in the host's memory.
  struct Made {
    std::unique_ptr<Algorithm> algorithm;
    std::string_view name;
  };
  /// How an allreduce's tensors are each done in the host's memory.
  struct MadeAllreduce {
    std::vector<std::unique_ptr<Algorithm>> algorithms;  ///< by tensor; null: nothing to do
    AllreduceAlgorithm mostly = AllreduceAlgorithm::automatic;
    Compression compression = Compression::none;
    std::optional<double> seconds = {};
    DType dtype = DType::float32;
    std::size_t count = 0, bytes = 0;
  };

  /// `say` tells what this rank gives, or throws what is wrong with that. Where it throws on any rank, or what they say
  /// differs, all throw: an InputError where that is what was thrown, or else a LogicError.
  void require_same(std::string_view place, const std::function<std::string()>& say);
  void require_same(std::string_view place, std::string_view text) {
    require_same(place, [&] { return std::string(text); });
  }
  [[noreturn]] void throw_on_all(const Differing& differing) const;
  /// What `make` makes; where it throws on any rank, all throw, and take the same tags from then on.
  [[nodiscard]] std::unique_ptr<Collective> made_on_all(const std::string& label,
                                                        const std::function<std::unique_ptr<Collective>()>& make);
  void renew_tags();
  [[nodiscard]] std::shared_ptr<SharedMemory> share_memory(std::size_t bytes, std::size_t keep_free,
                                                           std::string& refusal);

  void connect_devices(AllreduceAlgorithm wanted, const std::shared_ptr<nccl::Library>& library);
  [[nodiscard]] Buffer allocate_on_device(std::size_t bytes);
  [[nodiscard]] std::string nccl_refusal(AllreduceAlgorithm wanted, const std::shared_ptr<nccl::Library>& library);
  [[nodiscard]] bool on_device(std::span<const Tensor> tensors, const std::string& label) const;
  /// For what ranks compare.
  [[nodiscard]] static std::string place_of(bool is_on_device) { return is_on_device ? ", on a device" : ""; }
  void require_on_host(const Tensor& tensor, const std::string& label) const;
  static void require_memory(const Tensor& tensor, const std::string& label);
  static void require_apart(std::vector<Tensor> tensors, const std::string& label);
  /// `mine`, if it is given, can be copied by the processor to this rank's part of `all`, or from it.
  void require_part(const Tensor* mine, const Tensor& all, const std::vector<std::size_t>& counts,
                    const std::string& label) const;
  [[nodiscard]] std::unique_ptr<Collective> plan_on_device(const AllreduceSpec& spec, bool often);
  [[nodiscard]] std::unique_ptr<Collective> plan_on_device(const BroadcastSpec& spec, const Description& description);
  [[nodiscard]] std::unique_ptr<Collective> plan_on_device(const AllgatherSpec& spec, const std::vector<Range>& parts,
                                                           const Description& description);
  [[nodiscard]] std::unique_ptr<Collective> plan_on_device(const ReduceScatterSpec& spec,
                                                           const std::vector<Range>& parts,
                                                           const Description& description);
  [[nodiscard]] std::unique_ptr<Collective> plan_staged(const AllreduceSpec& spec, bool often);
  template <class Make>
  [[nodiscard]] std::unique_ptr<Collective> plan_staged(const Tensor& tensor, Range out, Range back,
                                                        const Description& description, Make&& make);
  [[nodiscard]] std::unique_ptr<Collective> run_staged(Buffer staging, std::vector<Staged::Piece> pieces,
                                                       const Description& description,
                                                       Compression compression = Compression::none);

  [[nodiscard]] std::unique_ptr<Collective> plan_on_host(const AllreduceSpec& spec, bool often,
                                                         std::shared_ptr<const void> keeper);
  [[nodiscard]] static std::string words_of(const AllreduceSpec& spec);
  [[nodiscard]] MadeAllreduce make_allreduce(const AllreduceSpec& spec, bool often);
  [[nodiscard]] Made make_broadcast(const Elements& data, int root);
  [[nodiscard]] std::vector<AllreduceChoice> choose(const AllreduceSpec& spec, std::span<const Elements> tensors,
                                                    std::span<const Site> sites, bool often);
  [[nodiscard]] const mpi::Communicator& plain_mpi();
  [[nodiscard]] std::unique_ptr<Algorithm> make(AllreduceAlgorithm algorithm, const Reduction& reduction,
                                                const Elements& elements, NodeCopies copies, const Wire& wire);
  [[nodiscard]] std::vector<Site> locate(std::span<const Elements> tensors);
  [[nodiscard]] const Allocation* allocation_of(const Elements& elements) const;
  [[nodiscard]] std::shared_ptr<SharedMemory> meetings(std::size_t tensors, std::string& refusal);
  [[nodiscard]] NodeCopies copies_of(const Elements& elements, const Site& site,
                                     const std::shared_ptr<SharedMemory>& meetings, std::size_t index) const;
  [[nodiscard]] std::unique_ptr<Collective> planned(std::unique_ptr<Algorithm> algorithm, std::string_view name,
                                                    Description description);
  [[nodiscard]] std::unique_ptr<Algorithm> to_and_from_root(std::span<const std::span<std::byte>> parts,
                                                            std::span<std::byte> mine, int root, bool gathers);
  /// By the other rank.
  using PairSequences = std::map<int, std::shared_ptr<PairSequence>>;
  [[nodiscard]] static std::shared_ptr<PairSequence> sequence_with(PairSequences& sequences, int rank);
  template <class Spec>
  [[nodiscard]] std::unique_ptr<Collective> plan_at_root(const Spec& spec, bool gathers);
  void require_rank(int rank, const std::string& label) const;
  void require_other(int rank, const std::string& label) const;
  void require_matching(const std::vector<std::size_t>& sent, const std::vector<std::size_t>& received,
                        const std::string& label);
  [[nodiscard]] std::unique_ptr<MpiTransport> across(MpiTransport::Members members, Tag tag) const;
  [[nodiscard]] std::unique_ptr<Transport> across_all();
  [[nodiscard]] std::unique_ptr<Transport> across_nodes();
  [[nodiscard]] std::vector<int> owners_of_slice(int slice) const;
  [[nodiscard]] Tag next_tag();

  void rehearse(const AllreduceTask& task);
  [[nodiscard]] double try_out(const AllreduceChoice& choice, const Buffer& memory);
  [[nodiscard]] MessageCosts measure_messages(const std::vector<int>& members);
  [[nodiscard]] CostCurve measure_window();
  [[nodiscard]] double measure_combining();
  [[nodiscard]] std::array<double, 3> measure_packing();
  [[nodiscard]] LinkProbe::Seconds agreed(int ring, const LinkProbe::Seconds& mine);
  [[nodiscard]] double slowest(double mine);

  /// Runs `work`, which fails on all ranks or on none, at the same place and for the same reason.
  template <class Work>
  void agreed_on_all(Work&& work) {
    try {
      work();
    } catch (Error& error) {
      if (is_whole_world()) error.set_agreed();
      throw;
    }
  }

  /// Runs `work`, which gathers over the group's communicators, on all ranks at the same place; `what` is for records.
  /// Whatever else is in flight goes on meanwhile.
  template <class Work>
  auto together(std::string_view what, Work&& work) {
    const RecordedCall call(ledger_, what);
    for (const auto& meeting : meetings_) meeting->at(what);
    return work();
  }
  /// Likewise, for calls of MPI that wait for the group's ranks: these have come by then, and no other world of theirs
  /// waits inside MPI, so that none waits long.
  template <class Work>
  auto together_in_mpi(std::string_view what, Work&& work) {
    return together(what, [&] {
      communicator_.barrier();
      const auto reservation =
          MpiTurn::of_process().reserve(limits_.priority, [&](bool mine) { return communicator_.all(mine); });
      return engine_->inside_mpi(std::forward<Work>(work));
    });
  }

  std::shared_ptr<Engine> engine_;
  Ledger ledger_;
  mpi::Communicator communicator_, plain_mpi_;  ///< the second one for PlainMpi, made when it is wanted
  GroupLimits limits_;
  Placement placement_;
  int rank_, size_;
  MpiTransport::Members everybody_;
  std::array<std::shared_ptr<Meeting>, 2> meetings_;  ///< of the group, and of its ranks on this node
  std::optional<LinkCosts> costs_;  ///< the same on all ranks; groups that are split off begin with them
  std::shared_ptr<TagPool> tags_ = std::make_shared<TagPool>();
  PairSequences sent_, received_;
  std::uint64_t allocations_made_ = 0;
  std::vector<Allocation> allocations_;
  std::vector<std::string> notes_;
  std::list<Kept> kept_;  ///< the latest first
  std::optional<OnDevice> device_;
  std::vector<std::string> device_lines_;
};

}  // namespace ronda
