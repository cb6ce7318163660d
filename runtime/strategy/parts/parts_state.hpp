#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/runtime/strategy/parts/rank_groups.hpp>
#include <ronda/runtime/strategy/parts/whole_model.hpp>
#include <ronda/runtime/strategy/step/training_state.hpp>

namespace ronda {

/// The state of a training whose ranks compute parts of one model (see ModelPartition): it shows the whole model on
/// every rank. Each state of the optimizer is saved by one rank.
///
/// If parameters are sliced, values that are set here reach the parts by `set_updates` or `broadcast_parameters`, which
/// throw LogicError if the state was not gathered since the last step.
class PartsState final : public TrainingState {
 public:
  /// @param parts  of this rank's part; the communicator is that of all ranks
  /// @param whole  bound; outlives this object, as the communicators do
  /// @param alike  the ranks that have this rank's layer states
  /// @param group_of  of parameters by name; null: one group
  PartsState(const Parts& parts, RankGroups& ranks, const WholeModel& whole, Communicator& alike,
             std::function<ParameterGroup(std::string_view)> group_of);

  [[nodiscard]] std::span<const Parameter> parameters() const noexcept override { return whole_.parameters(); }
  [[nodiscard]] std::string parameter_hash() const override;
  void broadcast_parameters() override;
  void restart_average() override;
  void visit(StateVisitor& visitor) override;
  void visit_model(StateVisitor& visitor) override;
  void visit_layer_states(StateVisitor& visitor) override { whole_.visit_layer_states(visitor); }
  void gather_state() override;
  void average_states() override;
  void set_updates(std::uint64_t updates) override;
  void prune(double share) override;
  [[nodiscard]] Zeros zeros() const override;

 protected:
  void swap_average() override;

 private:
  /// Calls body for each parameter that is pruned.
  void for_each_pruned(FunctionRef<void(const Parameter&)> body) const;
  void gather_whole() const;
  void require_gathered() const;

  RankGroups& ranks_;
  const WholeModel& whole_;
  Communicator& alike_;
  std::function<ParameterGroup(std::string_view)> group_of_;
  mutable std::uint64_t gathered_at_ = 0;  ///< number of updates when the copies were up to date
};

}  // namespace ronda
