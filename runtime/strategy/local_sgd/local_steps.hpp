#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/runtime/strategy/exchange/bucketed_allreduce.hpp>
#include <ronda/runtime/strategy/local_sgd/fragments.hpp>
#include <ronda/runtime/strategy/exchange/leave_notice.hpp>
#include <ronda/runtime/strategy/local_sgd/outer_step.hpp>
#include <ronda/runtime/strategy/step/own_steps.hpp>
#include <ronda/runtime/strategy/local_sgd/local_sgd.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>

namespace ronda {

/// No gradient is sent: each rank makes steps of its own, with the mean gradient of its own samples, and once in
/// `synchronise_every` steps all ranks take the same parameters again. With a, the parameters of the last
/// synchronisation, and x_r, those of rank r now:
///
///     d = mean over the ranks of (a - x_r)
///     average:    x_r = a - d
///     nesterov:   m = momentum · m + d,   x_r = a - rate · (d + momentum · m)
///
/// In the mean all ranks have the same weight, also a rank without samples. All ranks compute it from the same sums, so
/// that they then have the same bits. The sums of losses and flags are sent with the changes. Between synchronisations
/// a rank has only its own, and a step has no result. Ranks synchronise early if one of them asks to leave
/// (LeaveNotice).
///
/// With `fragments` this holds for one fragment at a time (Fragments), and for all fragments if a synchronisation is
/// requested, or if a rank asked to stop or to save.
///
/// Stich, "Local SGD converges fast and communicates little", ICLR 2019; Lin et al., "Don't use large mini-batches, use
/// local SGD", ICLR 2020 (`local_after`); Douillard et al., "DiLoCo: distributed low-communication training of language
/// models", 2023 (nesterov).
class LocalSteps final : public GradientExchange, public Pace, public KeptByExchange {
 public:
  /// Collective.
  /// @param slots    of the gradients, float32
  /// @param replica  has its arenas; outlives this object
  /// @param options  of the gradients' exchange, before the first local step
  LocalSteps(Communicator communicator, const std::vector<GradientSlot>& slots, const Replica& replica,
             const LocalSgd& local, const FusionOptions& options);

  void begin() override;
  void mark_ready(ParameterId id, Stream& stream) override;
  void reduce(Sums wanted, Stream& stream) override;
  void update(FunctionRef<void(const ArenaRange&)> apply, Stream& /*stream*/) override { apply(arena_); }
  void publish(UpdateOutcome* outcome, Stream& stream) override;

  void synchronise_next() noexcept override { asked_ = true; }
  void settle(Stream& stream) override;
  void set_updates(std::uint64_t updates) override;
  void gather(std::span<float* const> states) override;
  void visit(StateVisitor& visitor) override;
  [[nodiscard]] std::string explain_nonfinite() override;

  [[nodiscard]] double exposed_seconds() const noexcept override;
  [[nodiscard]] ExchangeTraits traits() noexcept override {
    return {.sums = &deltas_.control(), .pace = this, .kept = this};
  }
  [[nodiscard]] ExchangeReport report() const override;

 private:
  [[nodiscard]] StepControl& sums() noexcept { return deltas_.control(); }
  [[nodiscard]] std::vector<std::string> lines_of_plan() const;
  [[nodiscard]] std::vector<std::string> lines_of_costs() const;
  [[nodiscard]] std::size_t memory() const;
  [[nodiscard]] SynchronisationCosts synchronisations() const;
  void publish_fragments(UpdateOutcome& outcome, Stream& stream);
  void agree_on_all(const StepControl& told_already, UpdateOutcome& outcome, Stream& stream);
  void tell(const StepControl& all, UpdateOutcome& outcome, Stream& stream);
  void tell_nothing(UpdateOutcome& outcome, Stream& stream);
  void mark_all(Stream& stream);
  void synchronise(Stream& stream);
  void poll();
  [[nodiscard]] float* values() const noexcept { return arena_.values; }
  [[nodiscard]] float* changes() const noexcept { return reinterpret_cast<float*>(changes_memory_.data()); }

  Communicator communicator_;
  const Replica& replica_;
  LocalSgd local_options_;
  std::vector<GradientSlot> slots_;
  ArenaRange arena_;
  Buffer changes_memory_;  ///< of this rank, then of all
  FusionBuffer deltas_;    ///< of all parameters at once; also has the control block
  std::unique_ptr<OuterStep> outer_;
  LeaveNotice leave_;
  std::unique_ptr<Fragments> fragments_;         ///< null where all parameters synchronise at once
  std::unique_ptr<BucketedAllreduce> mirrored_;  ///< null where no step is mirrored

  std::uint64_t updates_ = 0;           ///< done
  std::uint64_t steps_ = 0;             ///< local ones since the last synchronisation
  std::uint64_t synchronisations_ = 0;  ///< done
  bool local_ = false;                  ///< the current step
  bool shown_ = false;                  ///< the mirrored exchange has this step's sums
  bool asked_ = false;                  ///< for a synchronisation after this step
  bool agreed_ = false;                 ///< on the sums of any step yet
  struct {
    bool average = false, states = false;
  } differs_;  ///< each rank has its own
  struct {
    OwnSteps own;       ///< since this rank last sent its sums to the others
    OwnSteps sent;      ///< with the sums of the last step that sent any
    StepControl late;   ///< sums of all ranks that came between two steps: the next step with a result includes them
    OwnSteps late_own;  ///< this rank's part of `late`
  } ledger_;
};

}  // namespace ronda
