#include <ronda/runtime/strategy/parts/parts_optimizer_states.hpp>

#include <map>
#include <set>
#include <string>
#include <utility>

namespace ronda {
namespace {

class ByName final : public StateVisitor {
 public:
  void visit(const State& state) override { all.emplace(state.name, state); }
  std::map<std::string, State> all;
};

StatePiece piece_of(const ModelPartition::OfParameter& parameter, std::string name, std::size_t part,
                    const ByName& mine) {
  StatePiece piece{.whole = {name, Tensor(parameter.stored, nullptr), Scope::sharded, parameter.flattened}};
  const auto found = mine.all.find(name);
  if (found == mine.all.end()) return piece;
  const State& state = found->second;
  piece.elements = state.tensor.pointer<float>();
  piece.count = static_cast<std::size_t>(state.tensor.desc().padded_count());
  if (parameter.slices)
    piece.slice = {*parameter.slices, part, state};
  else
    piece.whole = {state.name, state.tensor, Scope::sharded, state.flattened};
  return piece;
}

/// The savers of the pieces, in turn among the ranks that have them.
class Turns {
 public:
  explicit Turns(const RankGroups& ranks) : ranks_(ranks), of_part_(ranks.parts, 0) {}
  std::size_t next(const std::optional<std::size_t>& owner) {
    if (owner) return of_part_[*owner]++ % ranks_.shard.count * ranks_.parts + *owner;
    return of_all_++ % (ranks_.shard.count * ranks_.parts);
  }

 private:
  const RankGroups& ranks_;
  std::vector<std::size_t> of_part_;
  std::size_t of_all_ = 0;
};

}  // namespace

PartsOptimizerStates::PartsOptimizerStates(const Communicator& all, const RankGroups& ranks,
                                           const ModelPartition& partition, const Optimizer& optimizer)
    : DividedStates(all, optimizer, {}),
      group_(ranks.group),
      ranks_(ranks),
      partition_(partition),
      kinds_(optimizer.states().size()) {
  ByName mine;
  optimizer.visit(mine);
  Turns turns(ranks);
  for (const ModelPartition::OfParameter& parameter : partition.parameters)
    for (const std::string_view kind : optimizer.states()) {
      pieces_.push_back(piece_of(parameter, parameter.described.name + "." + std::string(kind), ranks.part, mine));
      savers_.push_back(turns.next(parameter.owner));
    }
  gathered_.resize(pieces_.size());
}

bool PartsOptimizerStates::saves(std::size_t piece) const {
  return savers_[piece] == ranks_.shard.index * ranks_.parts + ranks_.part;
}

const ModelPartition::OfParameter& PartsOptimizerStates::parameter_of(std::size_t piece) const {
  return partition_.parameters[piece / kinds_];
}

std::vector<State> PartsOptimizerStates::whole() {
  shown_ = true;
  std::vector<State> shown;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (!saves(i)) continue;
    State& state = shown.emplace_back(pieces_[i].whole);
    if (!parameter_of(i).slices) continue;
    if (gathered_[i].bytes() == 0) gathered_[i] = Buffer::host(state.tensor.desc().bytes());
    state.tensor = Tensor(state.tensor.desc(), gathered_[i].data());
  }
  return shown;
}

/// The ranks of one group send their slices to the rank of the group that saves the state.
void PartsOptimizerStates::gather() {
  if (!shown_) return;
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    if (parameter_of(i).slices && savers_[i] / ranks_.parts == ranks_.shard.index) gather(i);
}

void PartsOptimizerStates::gather(std::size_t piece) {
  const ParameterSlices& all = *parameter_of(piece).slices;
  std::vector<std::size_t> counts;
  for (std::size_t part = 0; part < ranks_.parts; ++part) counts.push_back(all.count(part));
  std::vector<float> mine,
      received(saves(piece) ? static_cast<std::size_t>(pieces_[piece].whole.tensor.desc().count()) : 0);
  if (pieces_[piece].slice) mine = to_file(pieces_[piece].slice->state);
  group_.gather(Tensor(std::span(mine)), Tensor(std::span(received)), static_cast<int>(savers_[piece] % ranks_.parts),
                counts);
  if (received.empty()) return;
  const std::span<float> whole(reinterpret_cast<float*>(gathered_[piece].data()), received.size());
  std::span<const float> left = received;
  for (std::size_t part = 0; part < counts.size(); ++part) {
    all.put(left.first(counts[part]), part, whole);
    left = left.subspan(counts[part]);
  }
}

}  // namespace ronda
