#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/state.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/runtime/strategy/parts/model_partition.hpp>
#include <ronda/runtime/strategy/parts/rank_groups.hpp>
#include <ronda/runtime/strategy/step/divided_states.hpp>

namespace ronda {

/// The optimizer's states if ranks compute parts of a model: those of a parameter that one part has, of slices, and of
/// parameters that all parts have. One rank saves each state whole; ranks take turns.
class PartsOptimizerStates final : public DividedStates {
 public:
  /// @param optimizer  bound; outlives this object, as ranks and partition do
  PartsOptimizerStates(const Communicator& all, const RankGroups& ranks, const ModelPartition& partition,
                       const Optimizer& optimizer);

  [[nodiscard]] std::vector<StatePiece> pieces() const override { return pieces_; }
  [[nodiscard]] std::vector<State> whole() override;
  void gather() override;

 private:
  [[nodiscard]] bool saves(std::size_t piece) const;
  [[nodiscard]] const ModelPartition::OfParameter& parameter_of(std::size_t piece) const;
  void gather(std::size_t piece);

  Communicator group_;
  const RankGroups& ranks_;
  const ModelPartition& partition_;
  std::size_t kinds_;  ///< states per parameter
  std::vector<StatePiece> pieces_;
  std::vector<std::size_t> savers_;  ///< by piece: a rank of all
  std::vector<Buffer> gathered_;     ///< by piece: the whole state of slices, if this rank saves it
  bool shown_ = false;               ///< `whole` was called; the same on all ranks
};

}  // namespace ronda
