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
#include <ronda/runtime/strategy/divided_states.hpp>
#include <ronda/runtime/strategy/gradient_exchange.hpp>
#include <ronda/runtime/strategy/replica.hpp>
#include <ronda/runtime/strategy/step_queue.hpp>

namespace ronda {

/// All that a training keeps from step to step on one rank: parameters, what optimizer, layers and exchange keep, the
/// number of updates and the factor of the learning rate. Checkpoints, audits and hooks read and set it.
///
/// Functions that set something throw LogicError with steps in flight. With MirroredOptions::one_copy the ranks of a
/// node have one memory for parameters and their average, and all functions that change these are collective.
class TrainingState {
 public:
  /// The parts of a strategy; all outlive this object.
  struct Parts {
    Communicator& communicator;
    Replica& replica;
    Optimizer& optimizer;
    Updater& updater;
    GradientExchange& exchange;
    const StepQueue& queue;
    std::vector<Range> shares;  ///< elements that each rank keeps the optimizer's states of, where these are divided
    Shard computing;            ///< of the ranks that compute: all, or the workers; empty where this rank does not
    bool has_samples = true;    ///< MirroredOptions::has_samples
  };

  explicit TrainingState(const Parts& parts)
      : TrainingState(parts, std::make_unique<DividedStates>(parts.communicator, parts.optimizer, parts.shares)) {}
  TrainingState(const TrainingState&) = delete;
  virtual ~TrainingState() = default;

  /// Of the whole model. Where a rank computes a part of it (PipelineState), the others' values are up to date after
  /// `gather_state`, `average_states` and `parameter_hash`; this holds for all that is shown here.
  [[nodiscard]] virtual std::span<const Parameter> parameters() const noexcept { return parts_.replica.parameters(); }
  /// Elements, without padding.
  [[nodiscard]] std::size_t parameter_count() const { return elements_of(parameters()); }
  /// A hash of all parameters in file layout, after a check that all ranks have the same. Collective. Throws Error,
  /// agreed, if they differ.
  [[nodiscard]] virtual std::string parameter_hash() const;
  /// Copies rank 0's parameters to all ranks, and renews what layers read of them in a half type. Call it after setting
  /// parameters (`Parameter::master`, if there is one); where a rank computes a part of the model, after `gather_state`
  /// and that. Collective.
  virtual void broadcast_parameters();
  /// With MirroredOptions::one_copy: returns when all ranks have come. For who sets parameters by what `visit` shows:
  /// he meets before, so that nobody reads any more, and after, so that all have what was set; one rank sets it, or all
  /// set the same. Without it returns at once. Collective.
  void meet();
  /// Copies rank 0's of what layers keep to all ranks, without what each rank has for itself (Scope::per_rank). Call it
  /// after setting such states. Collective.
  void broadcast_states();

  /// With MirroredOptions::ema_decay: calls `body`, during which the parameters are their exponential moving average
  /// over the updates so far. Without: calls it. No step may begin in it. Not collective, but with one_copy:
  /// then parameters stay the average where `body` throws an error that is not agreed.
  void with_average(FunctionRef<void()> body);
  /// Sets the average, if there is one, to the parameters as they are. The same on all ranks; not collective, but with
  /// one_copy.
  virtual void restart_average();

  /// Visits all that a checkpoint needs except `updates()` and `divided()`: parameters (in float32) and their average,
  /// what optimizer and layers keep, and the loss scale.
  virtual void visit(StateVisitor& visitor);
  /// The part of it that the model's outputs depend on: parameters, and what layers keep.
  virtual void visit_model(StateVisitor& visitor);
  /// What layers keep.
  virtual void visit_layer_states(StateVisitor& visitor) { parts_.replica.visit_layer_states(visitor); }
  /// The optimizer's states where each rank keeps those of its share alone (MirroredOptions::divide_states): `visit`
  /// does not show these then.
  [[nodiscard]] DividedStates& divided() noexcept { return *divided_; }
  /// Gathers the optimizer's state, if each rank has only a part of it: on every rank (NodeReduce), or as
  /// DividedStates::whole shows it. Where ranks make steps of their own, they synchronise, and their optimizers' states
  /// become the mean. Call it before these or what `visit` shows are read. Collective. What `visit`
  /// writes must be whole, and the same, on all ranks.
  virtual void gather_state();
  /// Sets what layers keep with Scope::averaged to the mean over the ranks, the same bits on all; evaluation calls it.
  /// Where ranks make steps of their own, they synchronise.
  /// Numbers that are equal on all ranks stay as they are, to the bit. Collective; with one rank it does nothing.
  virtual void average_states();

  /// Steps that changed the parameters so far; the schedule and Adam's bias correction use it. The same on all ranks.
  [[nodiscard]] std::uint64_t updates() const noexcept { return updates_; }
  /// The number of the step that begins next.
  [[nodiscard]] std::uint64_t next_step() const noexcept { return updates_ + parts_.queue.in_flight() + 1; }
  /// For a training that goes on from a checkpoint; called after `visit` has written. Where a rank computes a part of
  /// the model, `gather_state` comes before both.
  virtual void set_updates(std::uint64_t updates);
  /// After a step: `updates` is its outcome's.
  void count(std::uint64_t updates) noexcept { updates_ = updates; }
  /// Starts `schedule` at the next update, for a second `fit`. Not collective; the same on all ranks.
  void set_schedule(const Schedule& schedule);
  /// From the next step on: the schedule's rates times `factor`. Not collective; the same on all ranks. Throws
  /// InputError for a factor that is negative or not finite.
  void set_rate_factor(double factor);
  [[nodiscard]] double rate_factor() const noexcept { return rate_factor_; }

  /// Sets the smallest of each parameter that is pruned (ParameterGroup::pruned) and not frozen to zero, by magnitude,
  /// a `share` of its elements, also in their average. From then on their zeros stay zero: whatever was pruned is known
  /// by the values alone, and a checkpoint needs no more. The same on all ranks, which have the same values, without a
  /// message; with one_copy collective, between two meetings. Throws InputError for a share that is not from 0 to 1.
  virtual void prune(double share);
  /// Whether zeros of these parameters stay zero, from the next update on. Not collective; the same on all ranks.
  void set_keeps_zeros(bool keeps);
  [[nodiscard]] bool keeps_zeros() const noexcept { return keeps_zeros_; }
  struct Zeros {
    std::uint64_t weights = 0, zeros = 0;  ///< elements of the parameters that are pruned, without padding
  };
  /// Of the parameters that are trained, not their average. Not collective, unless each rank has a part of the model.
  [[nodiscard]] virtual Zeros zeros() const;

 protected:
  TrainingState(const Parts& parts, std::unique_ptr<DividedStates> divided)
      : parts_(parts), divided_(std::move(divided)), exchange_(parts.exchange.traits()) {}
  [[nodiscard]] const Parts& parts() const noexcept { return parts_; }
  /// What the exchange keeps.
  void visit_exchange(StateVisitor& visitor) {
    if (exchange_.kept != nullptr) exchange_.kept->visit(visitor);
  }
  /// Exchanges the parameters with their average.
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
  std::vector<std::int32_t> magnitudes_;  ///< of a parameter that is pruned
};

/// A hash of the parameters, which is returned; empty: this rank shares those of another. Collective. Throws Error,
/// agreed, where the ranks' differ.
[[nodiscard]] std::string equal_on_ranks(const Communicator& communicator, const std::string& hash);

}  // namespace ronda
