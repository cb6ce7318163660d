#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/core/state.hpp>
#include <ronda/core/step_control.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/optim/updater.hpp>

namespace ronda {

/// Traffic between this rank and parameter servers so far, as counted here: as a worker or as a server.
struct ServerTraffic {
  int servers = 0;                 ///< 0: no servers
  std::uint64_t pushed_bytes = 0;  ///< gradients, from workers to servers
  std::uint64_t pulled_bytes = 0;  ///< values, and sums of gradients if all ranks read them
  /// Gradients that came too late for a step: of all workers, as known at the last synchronisation.
  std::uint64_t dropped = 0;
  /// Asynchronous workers, also as known then: element s counts the gradients that were applied s updates after their
  /// worker pulled; the last element, 1023, also counts older ones.
  std::vector<std::uint64_t> staleness = {};
  static constexpr std::size_t ages = 1024;
};

/// Costs of synchronising on this rank so far.
struct SynchronisationCosts {
  std::uint64_t count = 0;       ///< number of fragment synchronisations
  std::uint64_t sent_bytes = 0;  ///< in messages of synchronisations and of the agreement on sums
  double waited_seconds = 0;
  double total_seconds = 0;  ///< time with messages in flight, including waits
};

/// The part of an exchange whose ranks do not take every step together: ranks with local steps (LocalSteps), and
/// workers and servers (ParameterServers, OwnPace).
class Pace {
 public:
  virtual ~Pace() = default;

  /// Makes the next step end with a synchronisation. Called on all ranks.
  virtual void synchronise_next() noexcept = 0;
  /// Call between steps: makes parameters and their average equal on all ranks. Collective.
  virtual void settle(Stream& stream) = 0;
  /// Call after setting parameters and states to the same values on all ranks.
  virtual void set_updates(std::uint64_t updates) = 0;
  /// Called before the first step that requests all sums (GradientExchange::Sums::of_all).
  virtual void expect_all_sums() {}
  /// Returns, as a text, the ranks whose steps were not finite since the synchronisation before the last. Empty: only
  /// the last step was not finite, or there are no local steps. Collective.
  [[nodiscard]] virtual std::string explain_nonfinite() { return {}; }

  /// Returns the number of the step whose samples this rank computes in the next step, which is the `step`-th (from 0)
  /// of an epoch of `steps`. Nullopt: this rank computes none.
  [[nodiscard]] virtual std::optional<std::size_t> samples_for(std::size_t step, std::size_t /*steps*/) { return step; }
  /// StepResult::samples_of and `settled` of the last published step.
  struct TakenSamples {
    std::optional<std::size_t> step = {};
    bool settled = true;
  };
  [[nodiscard]] virtual TakenSamples samples_taken() const noexcept { return {}; }
};

/// State that an exchange keeps from step to step.
class KeptByExchange {
 public:
  virtual ~KeptByExchange() = default;
  /// Visits the state of one step's exchange that the next step uses: see Collective.
  virtual void visit(StateVisitor& /*visitor*/) {}
  /// Makes optimizer states, of which each rank has its range, whole on all ranks. Collective.
  /// @param states  arenas as long as the arena of the values
  virtual void gather(std::span<float* const> /*states*/) {}
};

/// Sums of gradients of which each rank keeps only its share.
struct SumsOfShare {
  ArenaRange share = {};               ///< the range that this rank updates
  SumOverParts* over_ranks = nullptr;  ///< sums numbers over the ranks' shares
};

/// Properties and optional parts of an exchange. They do not change, and live as long as the exchange.
struct ExchangeTraits {
  /// This rank's sums of a step; after `reduce` the sums of all ranks. In the memory of the gradients.
  StepControl* sums = nullptr;
  /// A step completes without the host, so a device may record and replay it.
  bool moves_alone = false;
  Pace* pace = nullptr;            ///< null: ranks take every step together
  KeptByExchange* kept = nullptr;  ///< null: the exchange keeps no state
  /// Set by ShardedGradients: gradients are valid only until backward has passed them. `begin` is called before each
  /// micro-batch, which marks all its gradients, and `reduce` once, after the last.
  std::optional<SumsOfShare> share = {};
};

/// Data for plans and reports.
struct ExchangeReport {
  std::vector<std::string> plan;   ///< lines that are compared between ranks
  std::vector<std::string> costs;  ///< one line per bucket: its time here, and the cost model's, if any
  std::size_t memory = 0;          ///< bytes of host memory on this rank, without the arenas
  std::span<const FusionBuffer::Bucket> buckets = {};
  double sparse_bytes_per_step = 0;  ///< mean bytes that this rank sent for rows of sparse tables; not in `buckets`
  SynchronisationCosts synchronisations = {};
  ServerTraffic traffic = {};
};

/// Exchange of gradients between the ranks of a strategy. In every step, all ranks call:
///
///     begin, mark_ready for each gradient, reduce, (the decision), update, publish
///
/// All calls are in the order of the stream. They allocate nothing, except in exchanges with servers if only some of
/// many messages are in flight at a time (MessageWindow), or if workers do not wait for each other: these plan their
/// messages in each step. Collective. docs/extending.md shows a custom exchange.
class GradientExchange {
 public:
  virtual ~GradientExchange() = default;

  virtual void begin() = 0;
  /// Marks the gradient of `id` as complete: it may be sent, and must not change.
  virtual void mark_ready(ParameterId id, Stream& stream) = 0;

  enum class Sums : std::uint8_t {
    of_range,  ///< of the range that this rank updates; complete when its update begins
    of_all,    ///< of the whole arena, in place, on every rank
  };
  /// Reduces the step's sums, and the requested gradients, over all ranks.
  virtual void reduce(Sums wanted, Stream& stream) = 0;
  /// Calls `apply` once for each range that this rank updates. Until `publish` other ranks may write into this rank's
  /// parameters: only these updates may read them.
  virtual void update(FunctionRef<void(const ArenaRange&)> apply, Stream& stream) = 0;
  /// Makes the new parameters available on all ranks, and extends `outcome->spoiled` to all of them. If ranks make
  /// local steps, each keeps its own parameters until a synchronisation: the sums and `outcome` then cover all steps
  /// since the last one; they cover none in the steps between.
  virtual void publish(UpdateOutcome* outcome, Stream& stream) = 0;

  /// Seconds that `reduce`, `update` and `publish` have waited so far: communication not hidden by computation.
  [[nodiscard]] virtual double exposed_seconds() const noexcept = 0;
  [[nodiscard]] virtual ExchangeTraits traits() noexcept = 0;
  [[nodiscard]] virtual ExchangeReport report() const = 0;
};

}  // namespace ronda
