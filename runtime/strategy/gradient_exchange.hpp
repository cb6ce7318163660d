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
#include <ronda/runtime/strategy/local_sgd.hpp>

namespace ronda {

/// What this rank and parameter servers have sent each other so far, as counted here: as a worker or as a server.
struct ServerTraffic {
  int servers = 0;                 ///< 0: there are none
  std::uint64_t pushed_bytes = 0;  ///< of gradients, from workers to servers
  std::uint64_t pulled_bytes = 0;  ///< of values, and of sums of gradients where all ranks look at them
  /// Of all workers, as known at the last synchronisation: gradients that came too late for a step.
  std::uint64_t dropped = 0;
  /// Likewise, asynchronous: element s counts the gradients that were taken s updates after their worker pulled; the
  /// last one, 1023, older ones too.
  std::vector<std::uint64_t> staleness = {};
  static constexpr std::size_t ages = 1024;
};

/// The part of an exchange whose ranks do not take every step together: ranks with steps of their own (LocalSteps), and
/// workers and servers (ParameterServers, OwnPace).
class Pace {
 public:
  virtual ~Pace() = default;

  /// The step that begins next ends with a synchronisation. Called on all ranks alike.
  virtual void synchronise_next() noexcept = 0;
  /// Between steps: parameters and their average are the same on all ranks from here on. Collective.
  virtual void settle(Stream& stream) = 0;
  /// Parameters and states were set, to the same on all ranks.
  virtual void set_updates(std::uint64_t updates) = 0;
  /// Called before the first step that asks for all sums (GradientExchange::Sums::of_all).
  virtual void expect_all_sums() {}
  /// The ranks whose steps were not finite since the synchronisation before the last, as a text. Empty: only the last
  /// step was not, or there are no steps of their own. Collective.
  [[nodiscard]] virtual std::string explain_nonfinite() { return {}; }

  /// Of the step that begins next, the `step`-th (from 0) of an epoch of `steps`: the number of the step whose samples
  /// this rank computes. Nothing: it computes none.
  [[nodiscard]] virtual std::optional<std::size_t> samples_for(std::size_t step, std::size_t /*steps*/) { return step; }
  /// StepResult::samples_of and `settled` of the step that was published last.
  struct TakenSamples {
    std::optional<std::size_t> step = {};
    bool settled = true;
  };
  [[nodiscard]] virtual TakenSamples samples_taken() const noexcept { return {}; }
};

/// What an exchange keeps from step to step.
class KeptByExchange {
 public:
  virtual ~KeptByExchange() = default;
  /// Shows what of one step's exchange the next builds on: see Collective.
  virtual void visit(StateVisitor& /*visitor*/) {}
  /// Makes optimizer states, of which each rank knows its range, whole on all ranks. Collective.
  /// @param states  arenas as long as that of the values
  virtual void gather(std::span<float* const> /*states*/) {}
};

/// Sums of gradients where each rank keeps only those of its share.
struct SumsOfShare {
  ArenaRange share = {};               ///< the range that this rank updates
  SumOverParts* over_ranks = nullptr;  ///< adds up numbers of the ranks' shares
};

/// Properties of an exchange, and its parts that not every exchange has. They stay the same, and live as long as it.
struct ExchangeTraits {
  /// This rank's sums of a step go here; after `reduce` they are those of all ranks. In the memory of the gradients.
  StepControl* sums = nullptr;
  /// A step needs no host once it has begun, so that a device may record and replay it.
  bool moves_alone = false;
  Pace* pace = nullptr;            ///< null: ranks take every step together
  KeptByExchange* kept = nullptr;  ///< null: nothing
  /// Given (ShardedGradients): gradients are gone when backward has passed them. `begin` comes before each micro-batch,
  /// whose gradients are all marked, and `reduce` once, after the last.
  std::optional<SumsOfShare> share = {};
};

/// For plans and reports.
struct ExchangeReport {
  std::vector<std::string> plan;   ///< lines that ranks compare
  std::vector<std::string> costs;  ///< a line for each bucket: its time on this rank, and the cost model's, if any
  std::size_t memory = 0;          ///< bytes of the host beside the arenas, on this rank
  std::span<const FusionBuffer::Bucket> buckets = {};
  double sparse_bytes_per_step = 0;  ///< mean bytes that this rank sent of the rows of sparse tables; not in `buckets`
  SynchronisationCosts synchronisations = {};
  ServerTraffic traffic = {};
};

/// How the ranks of a strategy exchange gradients. In every step, on all ranks alike:
///
///     begin, mark_ready for each gradient, reduce, (the decision), update, publish
///
/// All are in the order of the stream. They allocate nothing, but for exchanges with servers, whose messages are
/// planned anew in each step where few of many are under way at a time (MessageWindow), or workers do not wait for each
/// other. Collective. docs/extending.md has an exchange of a program's own.
class GradientExchange {
 public:
  virtual ~GradientExchange() = default;

  virtual void begin() = 0;
  /// The gradient of `id` is complete: it may be sent, and does not change any more.
  virtual void mark_ready(ParameterId id, Stream& stream) = 0;

  enum class Sums : std::uint8_t {
    of_range,  ///< of the range that this rank is to update, and as late as its update
    of_all,    ///< of the whole arena, in place, on every rank
  };
  /// From here on the step's sums are those of all ranks, and so are the gradients that are wanted.
  virtual void reduce(Sums wanted, Stream& stream) = 0;
  /// Calls `apply` for each range that this rank updates, which may come one after the other. From here on until
  /// `publish` other ranks may write into this one's parameters: only these updates read them.
  virtual void update(FunctionRef<void(const ArenaRange&)> apply, Stream& stream) = 0;
  /// All ranks have all new parameters, and `outcome->spoiled` tells of all of them; or, where ranks make steps of
  /// their own, each has its own until a synchronisation: then the sums and `outcome` tell of all since the last one,
  /// and before of nothing.
  virtual void publish(UpdateOutcome* outcome, Stream& stream) = 0;

  /// Seconds that `reduce`, `update` and `publish` have waited so far: communication that nothing hid.
  [[nodiscard]] virtual double exposed_seconds() const noexcept = 0;
  [[nodiscard]] virtual ExchangeTraits traits() noexcept = 0;
  [[nodiscard]] virtual ExchangeReport report() const = 0;
};

}  // namespace ronda
