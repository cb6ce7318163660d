#pragma once
#include <cstddef>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/state.hpp>
#include <ronda/optim/optimizer.hpp>

namespace ronda {

/// The optimizer's states if each rank stores only those of its share of the arena. Two ranks; parameters a, b, c,
/// where b lies in both shares:
///
///     rank 0 keeps   a  b.           and saves   a  b
///     rank 1 keeps       .b  c       and saves         c
///
/// Most states are whole on one rank. The few that a cut divides are gathered on one of the ranks that have a large
/// part, the states of one parameter on different ranks. Together the ranks can therefore save each state once, in its
/// own layout, and a rank needs extra memory only for the states that it gathers.
class DividedStates {
 public:
  /// @param optimizer  bound; outlives this object. If it keeps all states, no state is divided
  /// @param shares     by rank: the elements of the arena whose states the rank stores; may be empty
  DividedStates(Communicator communicator, const Optimizer& optimizer, std::vector<Range> shares);
  DividedStates(const DividedStates&) = delete;
  virtual ~DividedStates() = default;

  /// This rank's piece of each state: the same names in the same order on all ranks.
  [[nodiscard]] virtual std::vector<StatePiece> pieces() const { return optimizer_.pieces(); }
  /// The states that this rank saves; each state is saved by exactly one rank. The values are up to date after
  /// `gather`; the result is valid as long as this object. The first call allocates memory for the gathered states.
  /// Must be called on all ranks. Throws ResourceError.
  [[nodiscard]] virtual std::vector<State> whole();
  /// Gathers the states that `whole` returned; does nothing before `whole` was called. Collective.
  virtual void gather();

 private:
  /// A parameter that is divided between ranks.
  struct Split {
    std::size_t first_piece = 0;        ///< index in pieces(); its other states follow
    Range elements;                     ///< in the arena
    int first_rank = 0, end_rank = 0;   ///< ranks that have a part of it
    std::vector<int> savers = {};       ///< saving rank, by state
    std::vector<Buffer> gathered = {};  ///< by state; empty on ranks that do not save it
  };
  void choose_savers(Split& split) const;
  [[nodiscard]] Range part_of_rank(const Split& split, int rank) const;
  void gather(const Split& split, const std::vector<StatePiece>& pieces);

  Communicator communicator_;
  const Optimizer& optimizer_;
  std::vector<Range> shares_;
  std::vector<Split> splits_;  ///< parameters of which this rank has a part
  bool shown_ = false;         ///< `whole` was called; the same on all ranks
};

}  // namespace ronda
