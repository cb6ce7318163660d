#include <ronda/core/counted.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/core/listed.hpp>
#include <ronda/core/random.hpp>
#include <ronda/data/batch.hpp>
#include <ronda/layers/graph_cut.hpp>
#include <ronda/layers/host_program.hpp>
#include <ronda/runtime/strategy/pipeline/staged_model.hpp>
#include <ronda/runtime/strategy/replica.hpp>

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

/// Seconds of each operation of the program, forward and backward, on random samples.
std::vector<OperationCosts> measured_costs(HostProgram& whole, const StageRequest& request) {
  Program& program = whole.program();
  Batch samples(request.fields, request.rows);
  samples.set_real(request.rows);
  std::vector<Tensor> inputs;
  for (const GraphInput& input : program.inputs()) {
    inputs.push_back(samples.field(input.field));
    draw_uniform(inputs.back(), request.seed, input.field);
  }
  for (const Parameter& parameter : whole.parameters()) draw_uniform(parameter.value, request.seed, parameter.name);
  draw_uniform(program.output_gradient(), request.seed, "gradient");
  StepControl sums;
  const Pass pass{.stream = request.stream,
                  .key = RngKey(request.seed, Purpose::layer, std::uint64_t{1}),
                  .weights = &samples.weights(),
                  .control = &sums,
                  .on_ready = {}};
  return program.measure(inputs, pass);
}

/// By node; what lowering added, as a reorder, counts for the operation behind it.
std::vector<double> by_node(const Graph& graph, std::span<const OperationCosts> costs) {
  std::vector<double> seconds(graph.nodes.size());
  double before = 0;
  std::size_t last = 0;
  for (const OperationCosts& cost : costs) {
    before += cost.forward + cost.backward;
    const auto node = std::ranges::find(graph.nodes, cost.name, &GraphNode::name);
    if (node == graph.nodes.end()) continue;
    last = static_cast<std::size_t>(node - graph.nodes.begin());
    seconds[last] += std::exchange(before, 0.0);
  }
  seconds[last] += before;
  return seconds;
}

void require_parameters(const Graph& graph, std::size_t stage) {
  if (!graph.parameters.empty()) return;
  throw InputError("stage " + std::to_string(stage) + ", which begins with " + graph.nodes.front().name +
                   ", has no parameters to train; cut the model elsewhere (.pipeline.cuts), or into fewer stages");
}

/// Of places that have the same parameters before them the first alone: each part has some then.
std::vector<std::size_t> places_between_parameters(const Graph& graph) {
  std::vector<std::size_t> places;
  std::size_t begin = 0;
  for (const std::size_t place : cut_places(graph)) {
    if (!has_parameters(graph, begin, place)) continue;
    places.push_back(place);
    begin = place;
  }
  return places;
}

std::string question_of(const Graph& graph, std::size_t stages, std::size_t rows) {
  Hash hash;
  for (const GraphNode& node : graph.nodes) hash.add(node.name).add(graph.values[node.output].shape.text());
  return "pipeline of " + std::to_string(stages) + " stages, " + std::to_string(rows) + " rows, model " + hash.text();
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

StagedModel::StagedModel(const StageRequest& request, const PipelineOptions& options, std::size_t stages,
                         RankPicker& picker, const Communicator& communicator) {
  agree(communicator, [&] { whole_ = build_graph(request.model, request.fields, request.rows); });
  const auto where = places(request, options, stages, picker, communicator);
  agree(communicator, [&] {
    graphs_ = cut(whole_, where);
    for (std::size_t stage = 0; stage < graphs_.size(); ++stage) require_parameters(graphs_[stage], stage);
    for (std::size_t stage = 0; stage < graphs_.size(); ++stage) plan_stage(request, stage, picker);
  });
}

std::vector<std::size_t> StagedModel::places(const StageRequest& request, const PipelineOptions& options,
                                             std::size_t stages, RankPicker& picker, const Communicator& communicator) {
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
                       " with parameters at most, not into " + std::to_string(stages) + " (.pipeline.stages)");
    question = question_of(whole_, stages, request.rows);
    known = picker.known(question);
    if (!known.empty()) chosen = places_of(whole_, split_names(known));
    if (known.empty() && !request.plan_name.empty())
      throw InputError(std::string(request.plan_name) +
                       ": this plan does not say where the model is cut; leave .plan out, name a new file, or give "
                       ".pipeline.cuts");
  });
  if (chosen.empty()) {
    std::optional<HostProgram> program;
    std::vector<double> seconds;
    agree(communicator, [&] { program.emplace(whole_, request.primitives, picker); });
    agree(communicator, [&] { seconds = by_node(whole_, measured_costs(*program, request)); });
    program.reset();
    Communicator(communicator).allreduce(Tensor(std::span(seconds)));  // all ranks cut alike
    chosen = balanced_cut(seconds, allowed, stages);
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
                         ProgramOptions{.input_gradient = stage > 0});
  plans_.emplace_back(*programs_.back(), request.primitives);
  outputs_.push_back(programs_.back()->output());
}

std::vector<std::string> StagedModel::begins() const {
  std::vector<std::string> names;
  for (const Graph& graph : graphs_) names.push_back(graph.nodes.front().name);
  return names;
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
                   bool input_gradient) {
  AnsweredPicker picker(answered);
  return {graph, loss, primitives, picker, {.input_gradient = input_gradient}};
}

}  // namespace ronda
