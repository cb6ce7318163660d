#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/core/state.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/optim/schedule.hpp>
#include <ronda/optim/updater.hpp>
#include <ronda/data/batch_plan.hpp>
#include <ronda/runtime/strategy/step/divided_states.hpp>
#include <ronda/runtime/strategy/step/gradient_exchange.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>
#include <ronda/runtime/strategy/step/step_queue.hpp>

namespace ronda {

/// All state that a training keeps from step to step on one rank: parameters, states of optimizer, layers and exchange,
/// the number of updates and the factor of the learning rate. Checkpoints, audits and hooks read and set it.
///
/// Functions that set state throw LogicError with steps in flight. With MirroredOptions::one_copy the ranks of a node
/// share one memory for parameters and their average, and all functions that change these are collective.
class TrainingState {
 public:
  /// The parts of a strategy; all must outlive this object.
  struct Parts {
    Communicator& communicator;
    Replica& replica;
    Optimizer& optimizer;
    Updater& updater;
    GradientExchange& exchange;
    const StepQueue& queue;
    std::vector<Range> shares;  ///< per rank: the elements whose optimizer state it stores, if these are divided
    Shard computing;  ///< shard of the computing ranks (all, or the workers); empty if this rank does not compute
    bool has_samples = true;  ///< MirroredOptions::has_samples
  };

  explicit TrainingState(const Parts& parts)
      : TrainingState(parts, std::make_unique<DividedStates>(parts.communicator, parts.optimizer, parts.shares)) {}
  TrainingState(const TrainingState&) = delete;
  virtual ~TrainingState() = default;

  /// Parameters of the whole model. If a rank computes only a part of the model (PipelineState), the values of the
  /// other parts are up to date only after `gather_state`, `average_states` or `parameter_hash`; this holds for all
  /// state in this class.
  [[nodiscard]] virtual std::span<const Parameter> parameters() const noexcept { return parts_.replica.parameters(); }
  /// Number of elements, without padding.
  [[nodiscard]] std::size_t parameter_count() const { return elements_of(parameters()); }
  /// Checks that all ranks have the same parameters, and returns their hash in file layout. Collective. Throws Error,
  /// agreed, if they differ.
  [[nodiscard]] virtual std::string parameter_hash() const;
  /// Copies rank 0's parameters to all ranks, and rounds them again to the half-type values that layers read. Call it
  /// after setting parameters (`Parameter::master`, if there is one); if a rank computes only a part of the model, call
  /// `gather_state` before setting them. Collective.
  virtual void broadcast_parameters();
  /// With MirroredOptions::one_copy: a barrier over all ranks. A caller that sets parameters through `visit` calls it
  /// before, so that no rank still reads them, and after, so that all ranks see the new values; either one rank sets
  /// them, or all set the same values. Without one_copy it returns at once. Collective.
  void meet();
  /// Copies rank 0's layer states to all ranks, except those with Scope::per_rank. Call it after setting such states.
  /// Collective.
  void broadcast_states();

  /// Calls `body`. With MirroredOptions::ema_decay, the parameters are replaced by their exponential moving average
  /// over the updates so far until `body` returns. No step may begin in `body`. Not collective, except with one_copy:
  /// then the parameters stay the average if `body` throws an error that is not agreed.
  void with_average(FunctionRef<void()> body);
  /// Sets the average, if there is one, to the current parameters. Call it on all ranks. Not collective, except with
  /// one_copy.
  virtual void restart_average();

  /// Visits all state that a checkpoint needs except `updates()` and `divided()`: parameters (in float32) and their
  /// average, optimizer and layer states, and the loss scale.
  virtual void visit(StateVisitor& visitor);
  /// Visits the part of it that the model's outputs depend on: parameters and layer states.
  virtual void visit_model(StateVisitor& visitor);
  /// Visits the layer states.
  virtual void visit_layer_states(StateVisitor& visitor) { parts_.replica.visit_layer_states(visitor); }
  /// The optimizer's states if each rank keeps only its share of them (MirroredOptions::divide_states); then `visit`
  /// does not show them.
  [[nodiscard]] DividedStates& divided() noexcept { return *divided_; }
  /// Gathers the optimizer's state if each rank has only a part of it: on every rank (NodeReduce), or as
  /// DividedStates::whole shows it. If ranks do not take every step together (see Pace), they synchronise, and their
  /// optimizers' states become the mean. Call it before reading these states or those of `visit`. Collective. Values
  /// written through `visit` must be whole, and the same on all ranks.
  virtual void gather_state();
  /// Sets each layer state with Scope::averaged to its mean over the ranks, the same bits on all ranks; evaluation
  /// calls it. If ranks do not take every step together, they synchronise. Numbers that are equal on all ranks stay
  /// unchanged, to the bit. Collective; with one rank it does nothing.
  virtual void average_states();

  /// Number of steps that changed the parameters; used by the schedule and Adam's bias correction. The same on all
  /// ranks.
  [[nodiscard]] std::uint64_t updates() const noexcept { return updates_; }
  /// The number of the step that begins next.
  [[nodiscard]] std::uint64_t next_step() const noexcept { return updates_ + parts_.queue.in_flight() + 1; }
  /// Sets the number of updates of a resumed training. Call it after writing through `visit`; if a rank computes only a
  /// part of the model, call `gather_state` before both.
  virtual void set_updates(std::uint64_t updates);
  /// Sets the number of updates to that of a step's outcome.
  void count(std::uint64_t updates) noexcept { updates_ = updates; }
  /// Starts `schedule` at the next update, for a second `fit`. Not collective; the same on all ranks.
  void set_schedule(const Schedule& schedule);
  /// Multiplies the schedule's rates by `factor` from the next step on. Not collective; the same on all ranks. Throws
  /// InputError for a factor that is negative or not finite.
  void set_rate_factor(double factor);
  [[nodiscard]] double rate_factor() const noexcept { return rate_factor_; }

  /// Sets the smallest elements by magnitude, a `share` of each parameter that is pruned (ParameterGroup::pruned) and
  /// not frozen, to zero, also in the average. From then on zeros stay zero: the values themselves show which elements
  /// are pruned, so a checkpoint needs no other record. The same on all ranks, which have the same values, without a
  /// message; with one_copy collective, and called between two calls of `meet`. Throws InputError for a share outside
  /// [0, 1].
  virtual void prune(double share);
  /// Sets whether zeros of these parameters stay zero, from the next update on. Not collective; the same on all ranks.
  void set_keeps_zeros(bool keeps);
  [[nodiscard]] bool keeps_zeros() const noexcept { return keeps_zeros_; }
  struct Zeros {
    std::uint64_t weights = 0, zeros = 0;  ///< elements of the pruned parameters, without padding
  };
  /// Counts the zeros of the trained parameters, not of their average. Not collective, unless each rank has a part of
  /// the model.
  [[nodiscard]] virtual Zeros zeros() const;

 protected:
  TrainingState(const Parts& parts, std::unique_ptr<DividedStates> divided)
      : parts_(parts), divided_(std::move(divided)), exchange_(parts.exchange.traits()) {}
  [[nodiscard]] const Parts& parts() const noexcept { return parts_; }
  /// Visits the exchange's states.
  void visit_exchange(StateVisitor& visitor) {
    if (exchange_.kept != nullptr) exchange_.kept->visit(visitor);
  }
  /// Swaps the parameters and their average.
  virtual void swap_average();

 private:
  void settle();
  void round_values();

  Parts parts_;
  std::unique_ptr<DividedStates> divided_;
  ExchangeTraits exchange_;
  std::uint64_t updates_ = 0;
  double rate_factor_ = 1;
  bool shows_average_ = false;  ///< in with_average
  bool keeps_zeros_ = false;
  std::vector<std::int32_t> magnitudes_;  ///< scratch: of a parameter that is pruned
};

/// Checks that all ranks have the same hash of their parameters, and returns it. An empty hash: this rank shares
/// another rank's parameters. Collective. Throws Error, agreed, if the hashes differ.
[[nodiscard]] std::string equal_on_ranks(const Communicator& communicator, const std::string& hash);

}  // namespace ronda
