#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/runtime/strategy/easgd/easgd.hpp>
#include <ronda/runtime/strategy/exchange/leave_notice.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>
#include <ronda/runtime/strategy/step/gradient_exchange.hpp>
#include <ronda/runtime/strategy/step/own_steps.hpp>

namespace ronda {

/// No gradient is sent: each rank updates its parameters x_r by the mean gradient of its own samples. Every
/// `communicate_every` steps ranks communicate by one allreduce. With the center c, of which each rank has the same
/// bits:
///
///     d_r = moving_rate · (x_r - c)
///     x_r = x_r - d_r
///     c   = c + sum of d_r over the ranks
///
/// Replicas differ also after a communication. They are equal, to the center, after a step that ends early (requested,
/// or because a rank asks to leave), that reports a stop or a save, and after `settle`, which tests, checkpoints and
/// hooks call. The next step then takes the parameters as the center.
///
/// The sums of losses and flags are sent with the differences: a step between two communications has no result.
///
/// Zhang, Choromanska, LeCun, "Deep learning with elastic averaging SGD", NeurIPS 2015: the synchronous form, with the
/// center on all ranks instead of on a master.
class ElasticSteps final : public GradientExchange, public Pace, public KeptByExchange {
 public:
  /// Collective.
  /// @param replica  has its arenas; outlives this object
  ElasticSteps(Communicator communicator, const Replica& replica, const Easgd& elastic, FusionOptions options);

  void begin() override;
  void mark_ready(ParameterId /*id*/, Stream& /*stream*/) override { leave_.poll(); }
  void reduce(Sums /*wanted*/, Stream& /*stream*/) override {}
  void update(FunctionRef<void(const ArenaRange&)> apply, Stream& /*stream*/) override { apply(arena_); }
  void publish(UpdateOutcome* outcome, Stream& stream) override;

  void synchronise_next() noexcept override { asked_ = true; }
  void settle(Stream& stream) override;
  void set_updates(std::uint64_t updates) override;
  void gather(std::span<float* const> states) override;
  [[nodiscard]] std::string explain_nonfinite() override;

  [[nodiscard]] double exposed_seconds() const noexcept override { return differences_.exposed_seconds(); }
  [[nodiscard]] ExchangeTraits traits() noexcept override { return {.sums = &sums(), .pace = this, .kept = this}; }
  [[nodiscard]] ExchangeReport report() const override;

 private:
  [[nodiscard]] StepControl& sums() noexcept { return differences_.control(); }
  [[nodiscard]] float* center() const noexcept { return reinterpret_cast<float*>(center_.data()); }
  void send(Stream& stream);
  void communicate(Stream& stream);
  void take_center();
  void publish_own(UpdateOutcome& outcome, Stream& stream);

  Communicator communicator_;
  const Replica& replica_;
  Easgd elastic_;
  ArenaRange arena_;
  Buffer center_;
  Buffer differences_memory_;  ///< of this rank, then their sum
  FusionBuffer differences_;   ///< also has the control block
  LeaveNotice leave_;

  std::uint64_t steps_ = 0;           ///< since the last communication
  std::uint64_t communications_ = 0;  ///< so far
  bool asked_ = false;                ///< a communication is requested for the next step
  bool agreed_ = false;               ///< the sums of some step were known on all ranks
  OwnSteps own_;                      ///< since this rank last sent its sums
  OwnSteps sent_;                     ///< with the last sums that were sent, if in this step
  struct {
    bool values = false, average = false, states = false;
  } differs_;  ///< between ranks
};

}  // namespace ronda
