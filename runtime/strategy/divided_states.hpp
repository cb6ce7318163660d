#pragma once
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/state_piece.hpp>
#include <ronda/optim/optimizer.hpp>

namespace ronda {

/// The optimizer's states where each rank keeps those of its share of the arena alone. Two ranks, parameters a, b, c,
/// of which b lies in both shares:
///
///     rank 0 keeps   a  b.           and saves   a  b
///     rank 1 keeps       .b  c       and saves         c
///
/// Most states are whole where they are. The few that the cuts go through are gathered on a rank that has much of them,
/// one state of a parameter here and the next there. So all ranks together can save each state once, in its own layout,
/// and a rank's memory for that is what it saves.
class DividedStates {
 public:
  /// @param optimizer  bound; outlives this object. Where it keeps all states, there is nothing divided
  /// @param shares     elements of the arena that each rank keeps the states of, by rank; some may be empty
  DividedStates(Communicator communicator, const Optimizer& optimizer, std::vector<Range> shares);
  /// Where each rank has some states whole and nothing of the others (a pipeline's stages).
  /// @param pieces  as `pieces` gives them
  /// @param saved   of these, those that this rank saves, by name: all ranks' together are each once
  DividedStates(Communicator communicator, const Optimizer& optimizer, std::vector<StatePiece> pieces,
                std::set<std::string> saved);

  DividedStates(const DividedStates&) = delete;
  virtual ~DividedStates() = default;

  /// What this rank has of each state: the same names in the same order on all ranks.
  [[nodiscard]] virtual std::vector<StatePiece> pieces() const { return saved_ ? given_ : optimizer_.pieces(); }
  /// The states that this rank saves: all ranks' together are each state once. They are up to date after `gather`, and
  /// valid as long as this object. Takes the memory of those that are gathered, the first time. To be called on all
  /// ranks. Throws ResourceError.
  [[nodiscard]] virtual std::vector<State> whole();
  /// Gathers what was shown by `whole`; nothing before. Collective.
  virtual void gather();

 private:
  /// A parameter that a cut goes through.
  struct Split {
    std::size_t first_piece = 0;        ///< of pieces(); one for each state follows
    Range elements;                     ///< of the arena
    int first_rank = 0, end_rank = 0;   ///< that have a part of it
    std::vector<int> savers = {};       ///< by state
    std::vector<Buffer> gathered = {};  ///< by state; empty on ranks that do not save it
  };
  void choose_savers(Split& split) const;
  [[nodiscard]] Range part_of_rank(const Split& split, int rank) const;
  void gather(const Split& split, const std::vector<StatePiece>& pieces);

  Communicator communicator_;
  const Optimizer& optimizer_;
  std::vector<Range> shares_;
  std::vector<StatePiece> given_;
  std::optional<std::set<std::string>> saved_;  ///< of `given_`
  std::vector<Split> splits_;                   ///< in which this rank has a part
  bool shown_ = false;                          ///< the same on all ranks
};

}  // namespace ronda
