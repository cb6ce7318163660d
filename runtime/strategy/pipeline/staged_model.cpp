#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/core/text.hpp>
#include <ronda/layers/graph_cut.hpp>
#include <ronda/layers/program.hpp>
#include <ronda/runtime/strategy/pipeline/node_costs.hpp>
#include <ronda/runtime/strategy/pipeline/staged_model.hpp>

#include <algorithm>
#include <iterator>

namespace ronda {
namespace {

/// Answers what was answered before.
class AnsweredPicker final : public Picker {
 public:
  explicit AnsweredPicker(const Picks& answered) : answered_(answered) {}
  std::size_t pick(std::string_view question, std::span<const Candidate> candidates) override {
    const auto found = std::ranges::find(candidates, known(question), &Candidate::name);
    if (found == candidates.end())
      throw LogicError("a stage is planned once more, and asks '" + std::string(question) + "' for the first time");
    return static_cast<std::size_t>(found - candidates.begin());
  }
  [[nodiscard]] std::string known(std::string_view question) const override {
    const auto found = answered_.find(question);
    return found == answered_.end() ? std::string() : found->second;
  }

 private:
  const Picks& answered_;
};

void require_parameters(const Graph& graph, std::size_t stage) {
  if (!graph.parameters.empty()) return;
  throw InputError("stage " + std::to_string(stage) + ", which begins with " + graph.nodes.front().name +
                   ", has no parameters to train; cut the model elsewhere (" + setting("cuts") +
                   "), or into fewer stages");
}

std::string question_of(const Graph& graph, std::size_t stages, const StageRequest& request) {
  Hash hash;
  for (const GraphNode& node : graph.nodes) hash.add(node.name).add(graph.values[node.output].shape.text());
  return "pipeline of " + std::to_string(stages) + " stages, " + std::to_string(request.micro_batches) + " times " +
         std::to_string(request.rows) + " rows, " + counted(request.optimizer_states, "state") + ", model " +
         hash.text();
}

std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> names{""};
  for (const char letter : text)
    if (letter == ',')
      names.emplace_back();
    else if (letter != ' ')
      names.back() += letter;
  return names;
}

std::vector<std::size_t> places_of(const Graph& graph, std::span<const std::string> names) {
  std::vector<std::size_t> places;
  std::ranges::transform(names, std::back_inserter(places),
                         [&](const std::string& name) { return cut_place(graph, name); });
  return places;
}

}  // namespace

StagedModel::StagedModel(const StageRequest& request, const Pipeline& options, std::size_t stages, RankPicker& picker,
                         const Communicator& communicator) {
  agree(communicator, [&] { whole_ = build_graph(request.model, request.fields, request.rows); });
  const auto where = places(request, options, stages, picker, communicator);
  agree(communicator, [&] {
    graphs_ = cut(whole_, where);
    for (std::size_t stage = 0; stage < graphs_.size(); ++stage) require_parameters(graphs_[stage], stage);
    for (std::size_t stage = 0; stage < graphs_.size(); ++stage) plan_stage(request, stage, picker);
  });
}

std::vector<std::size_t> StagedModel::places(const StageRequest& request, const Pipeline& options, std::size_t stages,
                                             RankPicker& picker, const Communicator& communicator) {
  std::vector<std::size_t> allowed, chosen;
  std::string question, known;
  agree(communicator, [&] {
    if (!options.cuts.empty()) {
      chosen = places_of(whole_, options.cuts);
      return;
    }
    allowed = places_between_parameters(whole_);
    if (allowed.size() + 1 < stages)
      throw InputError("this model can be cut into " + counted(allowed.size() + 1, "stage") +
                       " with parameters at most, not into " + std::to_string(stages) + " (" + setting("stages") + ")");
    question = question_of(whole_, stages, request);
    known = picker.known(question);
    if (!known.empty()) chosen = places_of(whole_, split_names(known));
    if (known.empty() && !request.plan_name.empty())
      throw InputError(std::string(request.plan_name) + ": this plan does not say where the model is cut; leave " +
                       setting("plan") + " out, name a new file, or give " + setting("cuts"));
  });
  if (chosen.empty()) {
    std::optional<HostProgram> program;
    NodeCosts costs;
    agree(communicator, [&] { program.emplace(whole_, request.primitives, picker); });
    agree(communicator, [&] { costs = measured_costs(*program, whole_, request); });
    program.reset();
    for (const auto& seconds : {std::span(costs.nodes), std::span(&costs.crossing_byte, 1)})
      Communicator(communicator).allreduce(Tensor(seconds));  // all ranks cut alike
    chosen = balanced_cut(costs.nodes, costs.with_costs(whole_, allowed), stages);
    measured_ = true;
  }
  if (!question.empty())
    chosen_[question] = listed(
        chosen, [&](std::size_t place) { return whole_.nodes[place].name; }, ",");
  return chosen;
}

void StagedModel::plan_stage(const StageRequest& request, std::size_t stage, Picker& picker) {
  const bool last = stage + 1 == graphs_.size();
  programs_.emplace_back(std::in_place, graphs_[stage], last ? &request.loss : nullptr, request.primitives, picker,
                         options_of_stage(stage));
  plans_.emplace_back(*programs_.back(), request.primitives);
  outputs_.push_back(programs_.back()->output());
}

std::vector<std::string> StagedModel::begins() const {
  std::vector<std::string> names;
  for (const Graph& graph : graphs_) names.push_back(graph.nodes.front().name);
  return names;
}

ModelPartition StagedModel::partition() const {
  ModelPartition partition{.parts = stages()};
  for (const GraphParameter& parameter : whole_.parameters) partition.parameters.push_back({.described = parameter});
  for (const GraphState& state : whole_.states) partition.states.push_back({.described = state});
  for (std::size_t stage = 0; stage < stages(); ++stage) {
    for (const ParameterRequest& request : plans_[stage].requests) {
      const auto found = std::ranges::find(whole_.parameters, request.name, &GraphParameter::name);
      ModelPartition::OfParameter& of =
          partition.parameters[static_cast<std::size_t>(found - whole_.parameters.begin())];
      of.owner = stage;
      of.stored = request.desc;
      of.flattened = request.flattened;
    }
    for (const GraphState& state : graphs_[stage].states) {
      const auto found = std::ranges::find(whole_.states, state.name, &GraphState::name);
      partition.states[static_cast<std::size_t>(found - whole_.states.begin())].owner = stage;
    }
  }
  return partition;
}

std::vector<std::string> StagedModel::lines() const {
  std::vector<std::string> lines;
  for (std::size_t stage = 0; stage < stages(); ++stage) {
    lines.push_back("stage " + std::to_string(stage) + " from " + graphs_[stage].nodes.front().name);
    lines.insert(lines.end(), plans_[stage].lines.begin(), plans_[stage].lines.end());
  }
  return lines;
}

Program plan_again(const Graph& graph, const Loss* loss, Primitives& primitives, const Picks& answered,
                   const ProgramOptions& options) {
  AnsweredPicker picker(answered);
  return {graph, loss, primitives, picker, options};
}

/// The first stage has no gradient to send, for which another one would wait.
ProgramOptions options_of_stage(std::size_t stage) { return {.input_gradient = stage > 0, .in_halves = stage > 0}; }

}  // namespace ronda
