#include <ronda/runtime/strategy/step/mirrored_options.hpp>
#include <ronda/runtime/strategy/step/evaluation.hpp>
#include <ronda/runtime/strategy/pipeline/pipeline_state.hpp>

#include <array>
#include <map>
#include <utility>
#include <vector>

namespace ronda {
namespace {

class ByName final : public StateVisitor {
 public:
  void visit(const State& state) override { all.emplace(state.name, state); }
  std::map<std::string, State> all;
};

/// What this rank has of the optimizer's states of all stages: all of its own stage's, nothing of the others'.
std::vector<StatePiece> pieces_of(const StagedModel& model, const Optimizer& optimizer) {
  ByName mine;
  optimizer.visit(mine);
  std::vector<StatePiece> pieces;
  for (std::size_t stage = 0; stage < model.stages(); ++stage)
    for (const GradientSlot& slot : model.plan(stage).slots)
      for (const std::string_view kind : optimizer.states()) {
        const ParameterRequest& request = model.plan(stage).requests[index_of(slot.id)];
        const std::string name = slot.name + "." + std::string(kind);
        StatePiece piece{.whole = {name, Tensor(request.desc, nullptr), Scope::sharded, request.flattened}};
        if (const auto found = mine.all.find(name); found != mine.all.end()) {
          piece.whole.tensor = found->second.tensor;
          piece.elements = piece.whole.tensor.pointer<float>();
          piece.count = static_cast<std::size_t>(piece.whole.tensor.desc().padded_count());
        }
        pieces.push_back(std::move(piece));
      }
  return pieces;
}

/// Those that this rank saves: the ranks that have the same stage take turns.
std::set<std::string> saved_by(const std::vector<StatePiece>& pieces, const Communicator& replicas) {
  std::set<std::string> names;
  int turn = 0;
  for (const StatePiece& piece : pieces)
    if (piece.count > 0 && turn++ % replicas.size() == replicas.rank()) names.insert(piece.whole.name);
  return names;
}

std::unique_ptr<DividedStates> divided_states(const TrainingState::Parts& parts, const PipelineState::Ranks& ranks,
                                              const StagedModel& model) {
  std::vector<StatePiece> pieces = pieces_of(model, parts.optimizer);
  std::set<std::string> saved = saved_by(pieces, ranks.replicas);
  return std::make_unique<DividedStates>(parts.communicator, parts.optimizer, std::move(pieces), std::move(saved));
}

}  // namespace

PipelineState::PipelineState(const Parts& given, const Ranks& ranks, const StagedModel& model, const WholeModel& whole)
    : TrainingState(given, divided_states(given, ranks, model)), ranks_(ranks), whole_(whole) {}

std::string PipelineState::parameter_hash() const {
  whole_.gather(ranks_.pipeline);
  HostCopy host(parts().replica.device());
  return equal_on_ranks(parts().communicator, hash_of(parameters(), host));
}

void PipelineState::broadcast_parameters() {
  parts().communicator.broadcast(whole_.all_values());
  whole_.restart_average();
}

void PipelineState::swap_average() {
  TrainingState::swap_average();
  whole_.swap_others();
}

TrainingState::Zeros PipelineState::zeros() const {
  const Zeros mine = TrainingState::zeros();
  std::array<std::int64_t, 2> all{static_cast<std::int64_t>(mine.weights), static_cast<std::int64_t>(mine.zeros)};
  ranks_.pipeline.allreduce(Tensor(std::span(all)));
  return {static_cast<std::uint64_t>(all[0]), static_cast<std::uint64_t>(all[1])};
}

void PipelineState::visit(StateVisitor& visitor) {
  whole_.visit_parameters(visitor);
  whole_.visit_average(visitor);
  whole_.visit_layer_states(visitor);
  visit_exchange(visitor);
}

void PipelineState::visit_model(StateVisitor& visitor) {
  whole_.visit_parameters(visitor);
  whole_.visit_layer_states(visitor);
}

void PipelineState::average_states() {
  ronda::average_states(parts().replica, ranks_.replicas, shard_of(ranks_.replicas), parts().has_samples);
  whole_.gather(ranks_.pipeline);
}

}  // namespace ronda
