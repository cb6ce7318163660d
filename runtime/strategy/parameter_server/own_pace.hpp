#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/runtime/key_value/key_value_store.hpp>
#include <ronda/runtime/strategy/parameter_server/gradient_pushes.hpp>
#include <ronda/runtime/strategy/step/gradient_exchange.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>

namespace ronda {

/// Workers and servers as in ParameterServers, where a step does not wait for all workers: it takes the gradients of
/// the first K that come, or, asynchronous, that of one. All ranks count the same steps; a step is one update. Two
/// workers, asynchronous, rank 1 slower:
///
///     server      step 0   step 1   step 2   step 3   step 4
///                 of 0     of 1     of 0     of 0     of 1          whose gradient it took
///     worker 0    computes          computes computes ...           learns of steps 0; 1, 2; 3; ...
///     worker 1    computes .......  computes ......................  learns of steps 0, 1; 2, 3, 4
///
/// A worker pushes its gradient. When the step that took it is over, the worker receives the values and the *records*
/// of all steps since its last answer, and completes these steps without computing. The first server, the *leader*,
/// picks the workers of a step and sends the choice to the other servers, so that all take the same gradients.
///
/// **The first K** (backup workers). A gradient counts for the step that its worker computed it for. A later one is
/// dropped and counted, and its worker continues with the step that is then next. A gradient of no samples, in a batch
/// of fewer samples than workers, is not one of the K.
///
/// **Asynchronous.** A worker computes the samples of a step that no other worker computes: at first worker w those of
/// step w, and after the step k that took its gradient those of step k + W, of W workers. Each record names the step
/// whose samples its gradient is of. When a step settles, samples that were computed and not taken are numbered anew,
/// with those of the following steps (EpochBatches), so that an epoch has each sample once.
/// With `max_staleness` S a worker that has pushed more than S times more often than the slowest is answered later.
///
/// A step *settles* if a synchronisation was requested, if a rank asks to stop or to save, or if a number is not
/// finite: the servers wait for all workers and drop late gradients, and all ranks continue from the same step. A loop
/// of one's own ends with such a step.
class OwnPace : public GradientExchange, public Pace, public KeptByExchange {
 public:
  /// Collective: makes this rank's part.
  static std::unique_ptr<OwnPace> make(const Communicator& communicator, const KeyValueOptions& how,
                                       const std::vector<GradientSlot>& slots, const Replica& replica,
                                       const FusionOptions& options);

  /// On every rank, before each step. A worker's also chooses its samples.
  [[nodiscard]] std::optional<std::size_t> samples_for(std::size_t step, std::size_t steps) override;
  [[nodiscard]] TakenSamples samples_taken() const noexcept override { return taken_samples_; }
  void synchronise_next() noexcept override { asked_ = true; }
  /// Throws LogicError where the last step did not settle.
  void settle(Stream& stream) override;

  [[nodiscard]] double exposed_seconds() const noexcept override { return exposed_seconds_; }
  [[nodiscard]] ExchangeTraits traits() noexcept override { return {.sums = &sums_, .pace = this, .kept = this}; }
  [[nodiscard]] ExchangeReport report() const override;

 protected:
  OwnPace(const Communicator& communicator, const KeyValueOptions& how, const std::vector<GradientSlot>& slots,
          const Replica& replica, const FusionOptions& options);

  /// The result of a step: with it all ranks continue alike.
  struct Record {
    StepControl sums;  ///< of the gradients that it took; flags of all ranks
    UpdateOutcome outcome;
    std::uint64_t samples_of = 0;  ///< asynchronous: the step whose samples it took, since the last one that settled
    std::uint64_t settles = 0;
  };
  /// From a worker to each server, after its gradients.
  struct Push {
    StepControl sums;              ///< its own
    std::uint64_t step = 0;        ///< since the last one that settled
    std::uint64_t samples_of = 0;  ///< asynchronous: the step whose samples it computed, counted likewise
    std::uint64_t end = 0;         ///< end of the epoch, counted likewise
    std::uint64_t idle = 0;        ///< the epoch has no samples for it: there are no gradients
  };
  // A server answers by a message `done`, or `dropped` if the gradient came too late: its version is the step that took
  // the worker's last gradient, since the last step that settled, and the new values follow. The leader then sends the
  // records.
  static constexpr const char* answer_label = "the answer to a push";
  template <class T>
  static Tensor bytes_of(std::span<T> objects) {
    return Tensor(std::span(reinterpret_cast<std::uint8_t*>(objects.data()), objects.size_bytes()));
  }
  template <class T>
  static Tensor bytes_of(T& object) {
    return bytes_of(std::span(&object, 1));
  }
  /// Ends the current step, the last argument of `samples_for`, with its record.
  void end_step(const Record& record, std::uint64_t steps);
  /// Collective over the servers: each has the values of all.
  void gather_values(Stream& stream);
  [[nodiscard]] std::size_t share_bytes(int rank) const {
    return shares_[static_cast<std::size_t>(rank)].size() * sizeof(float);
  }

  Communicator communicator_, alike_;  ///< of all ranks; of those of this role
  KeyValueOptions how_;
  Roles roles_;
  const Replica& replica_;
  std::vector<Range> shares_;  ///< by rank
  std::vector<FusionBuffer::Bucket> buckets_;
  std::vector<PushedPiece> pieces_;
  StepControl sums_;
  bool asked_ = false;    ///< for a synchronisation after this step
  bool settled_ = true;   ///< the last step, if there was one
  std::size_t step_ = 0;  ///< step of the epoch, the last argument of samples_for
  TakenSamples taken_samples_;
  bool differs_ = false;  ///< servers know the average of their own shares, and workers none
  ServerTraffic traffic_;
  double exposed_seconds_ = 0;

 private:
  [[nodiscard]] virtual std::size_t memory() const noexcept = 0;
  [[nodiscard]] std::vector<std::string> lines_of_plan() const;
  [[nodiscard]] std::vector<std::string> lines_of_costs() const;

  std::unique_ptr<Collective> all_values_, all_averages_;  ///< null where there is nothing to tell
};

}  // namespace ronda
