#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/runtime/strategy/step/divided_states.hpp>
#include <ronda/runtime/strategy/parts/rank_groups.hpp>
#include <ronda/runtime/strategy/split/split_model.hpp>

namespace ronda {

/// The optimizer's states of a model whose operations are split: a rank has slices of some, and others whole, as all
/// ranks have them. Each state is saved whole by one rank, and all ranks take turns.
class SlicedStates final : public DividedStates {
 public:
  /// @param optimizer  bound; this, ranks and model outlive this object
  SlicedStates(const Communicator& all, const RankGroups& ranks, const SplitModel& model, const Optimizer& optimizer);

  [[nodiscard]] std::vector<StatePiece> pieces() const override { return pieces_; }
  [[nodiscard]] std::vector<State> whole() override;
  void gather() override;

 private:
  [[nodiscard]] std::size_t saver(std::size_t piece) const;  ///< a rank of all
  [[nodiscard]] bool saves(std::size_t piece) const;
  [[nodiscard]] const std::optional<ParameterSlices>& slices(std::size_t piece) const;
  void gather(std::size_t piece);

  Communicator group_;
  const RankGroups& ranks_;
  const SplitModel& model_;
  std::size_t kinds_;  ///< of states a parameter has
  std::vector<StatePiece> pieces_;
  std::vector<Buffer> gathered_;  ///< by piece: whole, where this rank saves it
  bool shown_ = false;            ///< the same on all ranks
};

}  // namespace ronda
