#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <ronda/core/function_ref.hpp>
#include <ronda/runtime/strategy/parts/rank_groups.hpp>
#include <ronda/runtime/strategy/split/whole_values.hpp>
#include <ronda/runtime/strategy/step/training_state.hpp>

namespace ronda {

/// The state of a training whose ranks each compute a part of the model's operations: it shows the whole model, on
/// every rank. What is set in it reaches the parts by `set_updates` or `broadcast_parameters`, which throw LogicError
/// where it was not gathered since the last step.
class SplitState final : public TrainingState {
 public:
  /// @param parts  of this rank's part; the communicator is all ranks'
  /// @param ranks, model, whole  outlive this object; `whole` is bound
  /// @param group_of  of parameters by name; null: one group
  SplitState(const Parts& parts, RankGroups& ranks, const SplitModel& model, const WholeValues& whole,
             std::function<ParameterGroup(std::string_view)> group_of);

  [[nodiscard]] std::span<const Parameter> parameters() const noexcept override { return whole_.parameters(); }
  [[nodiscard]] std::string parameter_hash() const override;
  void broadcast_parameters() override;
  void restart_average() override;
  void visit(StateVisitor& visitor) override;
  void visit_model(StateVisitor& visitor) override;
  void gather_state() override;
  void average_states() override;
  void set_updates(std::uint64_t updates) override;
  void prune(double share) override;
  [[nodiscard]] Zeros zeros() const override;

 protected:
  void swap_average() override;

 private:
  /// Calls body(parameter, its average) for each that is pruned.
  void for_each_pruned(FunctionRef<void(const Parameter&, const Tensor&)> body) const;
  void gather_whole() const;
  void require_gathered() const;

  RankGroups& ranks_;
  const WholeValues& whole_;
  std::function<ParameterGroup(std::string_view)> group_of_;
  mutable std::uint64_t gathered_at_ = 0;  ///< updates after which the whole was up to date
};

}  // namespace ronda
