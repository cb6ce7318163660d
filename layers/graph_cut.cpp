#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/layers/graph/lowering.hpp>
#include <ronda/layers/graph_cut.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace ronda {

bool has_parameters(const Graph& graph, std::size_t begin, std::size_t end) {
  const auto node = [&](std::size_t place) { return graph.nodes.begin() + static_cast<std::ptrdiff_t>(place); };
  return std::any_of(node(begin), node(end), [](const GraphNode& each) { return !each.parameters.empty(); });
}

namespace {

/// What the nodes from `place` on read of those before, the graph's output included; in the order of computing.
std::vector<std::size_t> crossing(const Graph& graph, std::size_t place) {
  std::set<std::size_t> read{graph.output};
  for (std::size_t i = place; i < graph.nodes.size(); ++i)
    read.insert(graph.nodes[i].inputs.begin(), graph.nodes[i].inputs.end());
  std::vector<std::size_t> values;
  for (std::size_t i = 0; i < place; ++i)
    if (read.contains(graph.nodes[i].output)) values.push_back(graph.nodes[i].output);
  return values;
}

/// The name of the first of `all` that nodes before `place` and from it on have among their `ids`; empty: none.
template <class Id, class Named>
std::string name_on_both_sides(const Graph& graph, std::size_t place, std::vector<Id> GraphNode::*ids,
                               const std::vector<Named>& all) {
  std::set<Id> before;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    for (const Id id : graph.nodes[i].*ids)
      if (i < place)
        before.insert(id);
      else if (before.contains(id))
        return all[static_cast<std::size_t>(id)].name;
  return {};
}

/// The name of a parameter or a state that both sides read; empty where there is none.
std::string read_on_both_sides(const Graph& graph, std::size_t place) {
  const std::string parameter = name_on_both_sides(graph, place, &GraphNode::parameters, graph.parameters);
  return parameter.empty() ? name_on_both_sides(graph, place, &GraphNode::states, graph.states) : parameter;
}

/// Why no part may begin there, as a clause; empty where it may. Of several nodes of one name, as an attention's, only
/// the first can begin one: a cut is known by its name.
std::string why_not(const Graph& graph, std::size_t place) {
  const std::string& name = graph.nodes[place].name;
  if (std::ranges::find(graph.nodes, name, &GraphNode::name) !=
      graph.nodes.begin() + static_cast<std::ptrdiff_t>(place))
    return "it is within " + name;
  if (place == 0) return "it is the first, with which the first stage begins";
  if (!has_parameters(graph, 0, place)) return "no operation before it has parameters to train";
  if (!has_parameters(graph, place, graph.nodes.size())) return "no operation from there on has parameters to train";
  for (const std::size_t value : crossing(graph, place))
    if (graph.values[value].dtype != DType::float32) return "whole numbers would be sent there";
  if (const std::string both = read_on_both_sides(graph, place); !both.empty())
    return both + " is read before it and behind it";
  return {};
}

/// Takes the nodes of one part over, and numbers anew what they read.
class Part {
 public:
  explicit Part(const Graph& whole) : whole_(whole) {}

  void receive(std::size_t value) { part_.inputs.push_back({std::string(received_field), add_value(value)}); }
  void take(const GraphNode& node) {
    GraphNode copy = node;
    for (std::size_t& input : copy.inputs) input = value_of(input);
    for (ParameterId& id : copy.parameters)
      id = ParameterId{
          static_cast<std::uint32_t>(place_of(index_of(id), parameters_, part_.parameters, whole_.parameters))};
    for (StateId& id : copy.states)
      id = StateId{
          static_cast<std::uint32_t>(place_of(static_cast<std::size_t>(id), states_, part_.states, whole_.states))};
    copy.output = add_value(node.output);
    part_.nodes.push_back(std::move(copy));
  }
  /// @param given  numbers in the whole; the last is the output
  Graph finish(std::span<const std::size_t> given) {
    for (const std::size_t value : given) part_.passed.push_back(values_.at(value));
    part_.output = part_.passed.back();
    part_.passed.pop_back();
    return std::move(part_);
  }

 private:
  std::size_t add_value(std::size_t value) {
    Value copy = whole_.values[value];
    copy.id = part_.values.size();
    part_.values.push_back(copy);
    values_[value] = copy.id;
    return copy.id;
  }
  /// One that is not there yet is a field of the batch.
  std::size_t value_of(std::size_t value) {
    if (const auto known = values_.find(value); known != values_.end()) return known->second;
    const auto field = std::ranges::find(whole_.inputs, value, &GraphInput::value);
    if (field == whole_.inputs.end()) throw LogicError("a part of a graph reads what it is not given");
    const std::size_t place = add_value(value);
    part_.inputs.push_back({field->field, place});
    return place;
  }
  template <class T>
  static std::size_t place_of(std::size_t id, std::map<std::size_t, std::size_t>& known, std::vector<T>& part,
                              const std::vector<T>& whole) {
    const auto [found, added] = known.try_emplace(id, part.size());
    if (added) part.push_back(whole[id]);
    return found->second;
  }

  const Graph& whole_;
  Graph part_;
  std::map<std::size_t, std::size_t> values_, parameters_, states_;  ///< numbers in the whole: in the part
};

}  // namespace

std::vector<std::size_t> cut_places(const Graph& graph) {
  Graph fused = graph;
  graph::fuse(fused);
  std::set<std::string> first_ones;
  for (const GraphNode& node : fused.nodes) first_ones.insert(node.name);
  std::vector<std::size_t> places;
  for (std::size_t i = 1; i < graph.nodes.size(); ++i)
    if (first_ones.contains(graph.nodes[i].name) && why_not(graph, i).empty()) places.push_back(i);
  return places;
}

std::size_t crossing_bytes(const Graph& graph, std::size_t place) {
  std::size_t bytes = 0;
  for (const std::size_t value : crossing(graph, place))
    bytes += static_cast<std::size_t>(graph.values[value].shape.count()) * sizeof(float);
  return bytes;
}

std::vector<std::size_t> places_between_parameters(const Graph& graph) {
  std::vector<std::size_t> places;
  std::size_t begin = 0;
  for (const std::size_t place : cut_places(graph)) {
    if (has_parameters(graph, begin, place))
      places.push_back(place);
    else if (!places.empty() && crossing_bytes(graph, place) < crossing_bytes(graph, begin))
      places.back() = place;
    else
      continue;
    begin = place;
  }
  return places;
}

std::size_t cut_place(const Graph& graph, std::string_view name) {
  const auto node = std::ranges::find(graph.nodes, name, &GraphNode::name);
  const auto place = static_cast<std::size_t>(node - graph.nodes.begin());
  const std::string reason = node == graph.nodes.end() ? "the model has no such operation" : why_not(graph, place);
  if (reason.empty()) return place;
  const auto places = cut_places(graph);
  throw InputError("a stage cannot begin with '" + std::string(name) + "': " + reason + "; " +
                   (places.empty()
                        ? std::string("this model has no place for a cut")
                        : "it may with " + listed(
                                               places, [&](std::size_t i) { return graph.nodes[i].name; }, " or ")));
}

std::vector<Graph> cut(const Graph& graph, std::span<const std::size_t> places) {
  if (std::ranges::find(graph.inputs, received_field, &GraphInput::field) != graph.inputs.end())
    throw InputError("'" + std::string(received_field) +
                     "' names what a stage is sent by the one before; give the data's field another name");
  std::vector<Graph> parts;
  std::size_t begin = 0;
  std::vector<std::size_t> received;
  for (std::size_t i = 0; i <= places.size(); ++i) {
    const bool last = i == places.size();
    const std::size_t end = last ? graph.nodes.size() : places[i];
    if (end <= begin) throw InputError("the stages of a model begin with different operations, in its order");
    const std::vector<std::size_t> given = last ? std::vector{graph.output} : crossing(graph, end);
    Part part(graph);
    for (const std::size_t value : received) part.receive(value);
    for (std::size_t n = begin; n < end; ++n) part.take(graph.nodes[n]);
    parts.push_back(part.finish(given));
    received = given;
    begin = end;
  }
  return parts;
}

/// best[p][i]: of the first p + 1 parts, the last of which ends before place i of `ends`, the most costly one at least.
std::vector<std::size_t> balanced_cut(std::span<const double> costs, std::span<const CutPlace> allowed,
                                      std::size_t parts) {
  if (parts == 0 || allowed.size() + 1 < parts)
    throw InputError("the model can be cut into " + counted(allowed.size() + 1, "stage") + " at most, not into " +
                     std::to_string(parts));
  std::vector<double> before{0};  // the cost of all nodes before each place
  for (const double cost : costs) before.push_back(before.back() + cost);
  std::vector<CutPlace> ends(allowed.begin(), allowed.end());
  ends.push_back({costs.size(), 0});
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(parts, std::vector<double>(ends.size(), never));
  std::vector<std::vector<std::size_t>> from(parts, std::vector<std::size_t>(ends.size()));
  for (std::size_t i = 0; i < ends.size(); ++i) best[0][i] = before[ends[i].place] + ends[i].cost;
  for (std::size_t p = 1; p < parts; ++p)
    for (std::size_t i = p; i < ends.size(); ++i)
      for (std::size_t j = p - 1; j < i; ++j) {
        const double last = before[ends[i].place] - before[ends[j].place] + ends[i].cost + ends[j].cost;
        const double most = std::max(best[p - 1][j], last);
        if (most >= best[p][i]) continue;
        best[p][i] = most;
        from[p][i] = j;
      }
  std::vector<std::size_t> places;
  std::size_t i = ends.size() - 1;
  for (std::size_t p = parts; p-- > 1;) {
    i = from[p][i];
    places.push_back(ends[i].place);
  }
  std::ranges::reverse(places);
  return places;
}

}  // namespace ronda
