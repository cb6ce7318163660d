#include <ronda/runtime/strategy/split/sliced_states.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace ronda {
namespace {

class KeptStates final : public StateVisitor {
 public:
  void visit(const State& state) override { all.emplace(state.name, state); }
  std::map<std::string, State, std::less<>> all;
};

}  // namespace

SlicedStates::SlicedStates(const Communicator& all, const RankGroups& ranks, const SplitModel& model,
                           const Optimizer& optimizer)
    : DividedStates(all, optimizer, std::vector<StatePiece>(), std::set<std::string>()),
      group_(ranks.group),
      ranks_(ranks),
      model_(model),
      kinds_(optimizer.states().size()) {
  KeptStates mine;
  optimizer.visit(mine);
  for (std::size_t i = 0; i < model.whole().parameters.size(); ++i)
    for (const std::string_view kind : optimizer.states()) {
      const GraphParameter& parameter = model.whole().parameters[i];
      const std::string name = parameter.name + "." + std::string(kind);
      StatePiece piece{.whole = {name, Tensor({parameter.shape, DType::float32, {}}, nullptr), Scope::sharded}};
      if (const auto found = mine.all.find(name); found != mine.all.end()) {
        const State& state = found->second;
        piece.elements = state.tensor.pointer<float>();
        piece.count = static_cast<std::size_t>(state.tensor.desc().padded_count());
        if (const auto& slices = model.slices(i))
          piece.slice = {*slices, ranks.part, state};
        else
          piece.whole = {state.name, state.tensor, Scope::sharded, state.flattened};
      }
      pieces_.push_back(std::move(piece));
    }
  gathered_.resize(pieces_.size());
}

std::size_t SlicedStates::saver(std::size_t piece) const { return piece % (ranks_.shard.count * ranks_.parts); }

bool SlicedStates::saves(std::size_t piece) const {
  return saver(piece) == ranks_.shard.index * ranks_.parts + ranks_.part;
}

const std::optional<ParameterSlices>& SlicedStates::slices(std::size_t piece) const {
  return model_.slices(piece / kinds_);
}

std::vector<State> SlicedStates::whole() {
  shown_ = true;
  std::vector<State> shown;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (!saves(i)) continue;
    State& state = shown.emplace_back(pieces_[i].whole);
    if (!slices(i)) continue;
    if (gathered_[i].bytes() == 0) gathered_[i] = Buffer::host(state.tensor.desc().bytes());
    state.tensor = Tensor(state.tensor.desc(), gathered_[i].data());
  }
  return shown;
}

/// The ranks of one group send their slices to that of them which saves the state.
void SlicedStates::gather() {
  if (!shown_) return;
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    if (slices(i) && saver(i) / ranks_.parts == ranks_.shard.index) gather(i);
}

void SlicedStates::gather(std::size_t piece) {
  const ParameterSlices& all = *slices(piece);
  std::vector<std::size_t> counts;
  for (std::size_t part = 0; part < ranks_.parts; ++part) counts.push_back(all.count(part));
  std::vector<float> mine,
      everybodys(saves(piece) ? static_cast<std::size_t>(pieces_[piece].whole.tensor.desc().count()) : 0);
  if (pieces_[piece].slice) mine = to_file(pieces_[piece].slice->state);
  group_.gather(Tensor(std::span(mine)), Tensor(std::span(everybodys)), static_cast<int>(saver(piece) % ranks_.parts),
                counts);
  if (everybodys.empty()) return;
  const std::span<float> whole(reinterpret_cast<float*>(gathered_[piece].data()), everybodys.size());
  std::span<const float> left = everybodys;
  for (std::size_t part = 0; part < counts.size(); ++part) {
    all.put(left.first(counts[part]), part, whole);
    left = left.subspan(counts[part]);
  }
}

}  // namespace ronda
