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

/// How the ranks of a strategy exchange gradients. In every step, on all ranks alike:
///
///     begin, mark_ready for each gradient, reduce, (the decision), update, publish
///
/// All are in the order of the stream. They allocate nothing, but for those of servers, whose messages are planned anew
/// in each step where few of many are under way at a time (MessageWindow), or workers do not wait for each other.
/// Collective.
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
  /// Before the first step for which `reduce` is asked for these: takes the memory that this needs, if it has none yet.
  virtual void prepare(Sums /*wanted*/) {}
  /// From here on the step's sums are those of all ranks, and so are the gradients that are wanted.
  virtual void reduce(Sums wanted, Stream& stream) = 0;
  /// Has `apply` update what this rank is to update, range by range, which may come one after the other. From here on
  /// until `publish` other ranks may write into this one's parameters: nobody reads them but these updates.
  virtual void update(FunctionRef<void(const ArenaRange&)> apply, Stream& stream) {
    for (const ArenaRange& range : ranges_to_update(stream)) apply(range);
  }
  /// All of it at once; to be updated after this call.
  [[nodiscard]] virtual std::span<const ArenaRange> ranges_to_update(Stream& stream) = 0;
  /// All ranks have all new parameters, and `outcome->spoiled` tells of all of them; or, where ranks make steps of
  /// their own, each has its own until a synchronisation: then the sums and `outcome` tell of all since the last one,
  /// and before of nothing.
  virtual void publish(UpdateOutcome* outcome, Stream& stream) = 0;

  /// Where this rank's sums of a step go, and all ranks' are found after `reduce`: in the memory of the gradients.
  [[nodiscard]] virtual StepControl& sums() noexcept = 0;
  /// Whether a step goes on without the host once it was begun, so that a device may record it and do it again.
  [[nodiscard]] virtual bool moves_alone() const noexcept = 0;
  /// Makes optimizer states, of which each rank knows its range, whole on all ranks. Collective.
  /// @param states  arenas as long as that of the values
  virtual void gather(std::span<float* const> /*states*/) {}
  // Where ranks make steps of their own for some time (LocalSteps).

  /// The step that begins next ends with a synchronisation. The same on all ranks.
  virtual void synchronise_next() noexcept {}
  /// Between steps: parameters and their average are the same on all ranks from here on. Collective.
  virtual void settle(Stream& /*stream*/) {}
  /// Parameters and states were set, to the same on all ranks.
  virtual void set_updates(std::uint64_t /*updates*/) {}
  /// Which ranks' steps were not finite, since the synchronisation before the last. Empty: the last step alone was not,
  /// or there are no steps of their own. Collective.
  [[nodiscard]] virtual std::string explain_nonfinite() { return {}; }
  [[nodiscard]] virtual SynchronisationCosts synchronisations() const noexcept { return {}; }
  [[nodiscard]] virtual ServerTraffic server_traffic() const { return {}; }
  /// Where ranks step at their own pace (OwnPace): of the step that begins next, the `step`-th (from 0) of an epoch of
  /// `steps`, the number of the step whose samples this rank computes. Nothing: it computes none.
  [[nodiscard]] virtual std::optional<std::size_t> samples_for(std::size_t step, std::size_t /*steps*/) { return step; }
  /// StepResult::samples_of and `settled` of the step that was published last.
  struct TakenSamples {
    std::optional<std::size_t> step = {};
    bool settled = true;
  };
  [[nodiscard]] virtual TakenSamples samples_taken() const noexcept { return {}; }

  /// Sums of gradients when each rank keeps only those of its share.
  struct SumsOfShare {
    ArenaRange share;          ///< these; the update's range
    SumOverParts& over_ranks;  ///< adds up what ranks make of theirs
  };
  /// Given (ShardedGradients): gradients are gone when backward has gone on. `begin` comes before each micro-batch,
  /// whose gradients are all marked, and `reduce` once, after the last.
  [[nodiscard]] virtual std::optional<SumsOfShare> sums_of_share() noexcept { return {}; }

  /// Shows what of one step's exchange the next builds on: see Collective.
  virtual void visit(StateVisitor& visitor) = 0;

  // For plans and reports.

  [[nodiscard]] virtual std::span<const FusionBuffer::Bucket> buckets() const noexcept = 0;
  /// Lines for the plan that ranks compare.
  [[nodiscard]] virtual std::vector<std::string> describe() const = 0;
  /// Bytes that the rows of sparse tables had in the mean of the steps, as this rank sent them; beside the buckets.
  [[nodiscard]] virtual double sparse_bytes_per_step() const noexcept { return 0; }
  /// A line a bucket: the time that its runs took on this rank, and that of the cost model, where there is one.
  [[nodiscard]] virtual std::vector<std::string> report() const = 0;
  /// Seconds that `reduce`, `update` and `publish` have waited so far: communication that nothing hid.
  [[nodiscard]] virtual double exposed_seconds() const noexcept = 0;
  /// Bytes of the host that this rank keeps beside the arenas.
  [[nodiscard]] virtual std::size_t memory() const noexcept = 0;
};

}  // namespace ronda
