#include <ronda/runtime/strategy/step/divided_states.hpp>

#include <algorithm>
#include <utility>

namespace ronda {

DividedStates::DividedStates(Communicator communicator, const Optimizer& optimizer, std::vector<Range> shares)
    : communicator_(std::move(communicator)), optimizer_(optimizer), shares_(std::move(shares)) {
  const OptimizerBindings& bindings = optimizer_.bindings();
  if (!bindings.kept) return;
  const std::size_t states = optimizer_.states().size();
  for (std::size_t i = 0; i < bindings.segments.size(); ++i) {
    const ArenaSegment& segment = bindings.segments[i];
    Split split{i * states, {segment.offset, segment.offset + static_cast<std::size_t>(segment.desc.padded_count())}};
    const std::size_t mine = overlap_of(split.elements, *bindings.kept).size();
    if (mine == 0 || mine == split.elements.size()) continue;
    choose_savers(split);
    splits_.push_back(std::move(split));
  }
}

/// The ranks that have half as much as any have, in turn.
void DividedStates::choose_savers(Split& split) const {
  std::size_t most = 0;
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    const std::size_t part = part_of_rank(split, rank).size();
    if (part == 0) continue;
    if (most == 0) split.first_rank = rank;
    split.end_rank = rank + 1;
    most = std::max(most, part);
  }
  std::vector<int> able;
  for (int rank = split.first_rank; rank < split.end_rank; ++rank)
    if (2 * part_of_rank(split, rank).size() >= most) able.push_back(rank);
  for (std::size_t i = 0; i < optimizer_.states().size(); ++i) split.savers.push_back(able[i % able.size()]);
}

Range DividedStates::part_of_rank(const Split& split, int rank) const {
  return overlap_of(split.elements, shares_[static_cast<std::size_t>(rank)]);
}

std::vector<State> DividedStates::whole() {
  shown_ = true;
  const std::vector<StatePiece> all = pieces();
  std::vector<State> shown;
  for (const StatePiece& piece : all)
    if (!piece.whole.tensor.empty()) shown.push_back(piece.whole);
  for (Split& split : splits_) {
    split.gathered.resize(split.savers.size());
    for (std::size_t i = 0; i < split.savers.size(); ++i) {
      if (split.savers[i] != communicator_.rank()) continue;
      if (split.gathered[i].bytes() == 0) split.gathered[i] = Buffer::host(split.elements.size() * sizeof(float));
      State state = all[split.first_piece + i].whole;
      state.tensor = Tensor(state.tensor.desc(), split.gathered[i].data());
      shown.push_back(std::move(state));
    }
  }
  return shown;
}

/// Ranks send and receive in one order, by parameter and then by sender, so that no two wait for each other.
void DividedStates::gather() {
  if (!shown_) return;
  const std::vector<StatePiece> all = pieces();
  for (const Split& split : splits_) gather(split, all);
}

void DividedStates::gather(const Split& split, const std::vector<StatePiece>& pieces) {
  const int me = communicator_.rank();
  for (int rank = split.first_rank; rank < split.end_rank; ++rank) {
    const Range part = part_of_rank(split, rank);
    if (part.size() == 0) continue;  // a worker between servers
    for (std::size_t i = 0; i < optimizer_.states().size(); ++i) {
      const StatePiece& mine = pieces[split.first_piece + i];
      const auto place = [&] {
        return std::span(reinterpret_cast<float*>(split.gathered[i].data()), split.elements.size())
            .subspan(part.begin - split.elements.begin, part.size());
      };
      const int saver = split.savers[i];
      if (rank == me && saver == me)
        std::copy_n(mine.elements, mine.count, place().begin());
      else if (rank == me)
        communicator_.send(Tensor(std::span(mine.elements, mine.count)), saver);
      else if (saver == me)
        communicator_.receive(Tensor(place()), rank);
    }
  }
}

}  // namespace ronda
