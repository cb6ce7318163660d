// A graph that is cut into parts computes, part by part, what the whole computes; cuts are where they may be.
#include "support/catch.hpp"
#include "support/message.hpp"

#include <cmath>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include <ronda/core/compute_device.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/random.hpp>
#include <ronda/layers/graph_cut.hpp>
#include <ronda/layers/host_program.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/layers/primitives.hpp>

using namespace ronda;
using namespace ronda::test;

namespace {

const Shape cut_input{3, 8, 8, 2};

Sequential branching() {
  return Sequential(Conv2d(4, 3, 1, 1), BatchNorm(), ReLU(), Residual(Sequential(Conv2d(4, 3, 1, 1), ReLU())), ReLU(),
                    MaxPool2d(2), Flatten(), Dense(6), ReLU(), Dense(3));
}

std::vector<std::string> names_at(const Graph& graph, const std::vector<std::size_t>& places) {
  std::vector<std::string> names;
  for (const std::size_t place : places) names.push_back(graph.nodes[place].name);
  return names;
}

/// Sets parameters by their names, so that those of a part are those of the whole.
void draw_parameters(const HostProgram& program) {
  for (const Parameter& parameter : program.parameters()) {
    const RngKey key(7, Purpose::test, parameter.name);
    std::vector<float> values(static_cast<std::size_t>(parameter.value.desc().count()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = key.uniform(i) - 0.4F;
    from_file(parameter, values, parameter.value);
  }
}

using Gradients = std::map<std::string, std::vector<float>>;

void add_gradients(const HostProgram& program, Gradients& all) {
  for (const Parameter& parameter : program.parameters()) all[parameter.name] = to_file(parameter, parameter.gradient);
}

std::vector<float> drawn(std::size_t count) {
  const RngKey key(8, Purpose::test, "input");
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = key.uniform(i);
  return numbers;
}

struct PartByPart {
  std::vector<float> outputs;
  Gradients gradients;
};

/// Forward through all parts, then backward, from an output gradient of ones.
PartByPart run_parts(const std::vector<Graph>& graphs, Primitives& primitives) {
  FirstPicker picker;
  std::deque<HostProgram> programs;
  std::vector<float> input = drawn(static_cast<std::size_t>(cut_input.count()));
  const ComputeDevice device = ComputeDevice::processor();
  std::vector<float> ones(static_cast<std::size_t>(cut_input[0]), 1.0F);
  const Tensor weights{std::span(ones)};
  const Pass pass{.stream = *device.stream, .weights = &weights, .on_ready = {}};
  Tensor passed({cut_input, DType::float32, {}}, input.data());
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    HostProgram& program =
        programs.emplace_back(graphs[i], primitives, picker, ProgramOptions{.input_gradient = i > 0});
    draw_parameters(program);
    REQUIRE(program.program().inputs().size() == 1);
    CHECK(program.program().inputs()[0].field == (i == 0 ? "input" : received_field));
    passed = program.program().forward({&passed, 1}, pass);
    CHECK(program.program().output_place().data() == passed.data());
  }
  PartByPart result;
  result.outputs.assign(passed.as<float>().begin(), passed.as<float>().end());
  for (float& number : programs.back().program().output_gradient().as<float>()) number = 1;
  for (std::size_t i = graphs.size(); i-- > 0;) {
    programs[i].program().backward(pass);
    add_gradients(programs[i], result.gradients);
    if (i > 0) reorder(programs[i].program().input_gradient(0), programs[i - 1].program().output_gradient());
  }
  return result;
}

double farthest(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(double{a[i]} - b[i]));
    largest = std::max(largest, std::abs(double{b[i]}));
  }
  return most / (1 + largest);
}

}  // namespace

TEST_CASE("a model may be cut where one value crosses, and parameters lie on both sides") {
  const Graph graph = build_graph(branching(), cut_input);
  CHECK(names_at(graph, cut_places(graph)) ==
        std::vector<std::string>{"batch_norm1", "conv2", "max_pool1", "flatten1", "dense1", "dense2"});
  CHECK(graph.nodes[cut_place(graph, "relu1")].name == "relu1");  // asked for, though a batch norm does its work
  require_mentions(message_of<InputError>([&] { static_cast<void>(cut_place(graph, "add1")); }),
                   {"'add1'", "2 values", "and", "batch_norm1, conv2"});
  require_mentions(message_of<InputError>([&] { static_cast<void>(cut_place(graph, "conv1")); }), {"the first"});
  require_mentions(message_of<InputError>([&] { static_cast<void>(cut_place(graph, "conv7")); }),
                   {"no such operation"});
}

TEST_CASE("a parameter that is read on both sides lets no cut between") {
  const Dense twice(5);
  const Graph graph = build_graph(Sequential(Dense(5), twice, ReLU(), twice, Dense(3)), {2, 5});
  CHECK(names_at(graph, cut_places(graph)) == std::vector<std::string>{"dense2", "dense3"});
  require_mentions(message_of<InputError>([&] { static_cast<void>(cut_place(graph, "relu1")); }),
                   {"dense2.weight is read before it and behind it"});
}

TEST_CASE("parts compute what the whole computes, forward and backward, wherever the cuts are") {
  const Graph graph = build_graph(branching(), cut_input);
  for (const auto& primitives : {make_reference_primitives(), make_onednn_primitives(1)}) {
    const PartByPart whole = run_parts({graph}, *primitives);
    CHECK(whole.gradients.size() == graph.parameters.size());
    const auto check = [&](const std::vector<std::size_t>& places) {
      const PartByPart parts = run_parts(cut(graph, places), *primitives);
      CHECK(farthest(parts.outputs, whole.outputs) < 1e-4);
      REQUIRE(parts.gradients.size() == whole.gradients.size());
      for (const auto& [name, numbers] : parts.gradients) {
        INFO(name);
        CHECK(farthest(numbers, whole.gradients.at(name)) < 1e-3);
      }
    };
    const std::vector<std::size_t> places = cut_places(graph);
    for (const std::size_t place : places) check({place});
    check({places[0], places[1], places[4], places[5]});
  }
}

TEST_CASE("the most costly part is as cheap as can be") {
  const std::vector<double> costs{3, 1, 1, 5, 2, 2, 4};
  const std::vector<std::size_t> anywhere{1, 2, 3, 4, 5, 6};
  CHECK(balanced_cut(costs, anywhere, 1).empty());
  CHECK(balanced_cut(costs, anywhere, 2) == std::vector<std::size_t>{4});
  CHECK(balanced_cut(costs, anywhere, 3) == std::vector<std::size_t>{3, 5});
  CHECK(balanced_cut(costs, std::vector<std::size_t>{1, 6}, 3) == std::vector<std::size_t>{1, 6});
  require_mentions(
      message_of<InputError>([&] { static_cast<void>(balanced_cut(costs, std::vector<std::size_t>{2}, 3)); }),
      {"2 stages at most", "3"});
  // Against all choices.
  const RngKey key(9, Purpose::test, "costs");
  std::vector<double> many(9);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = key.uniform(i);
  const auto most = [&](const std::vector<std::size_t>& places) {
    double largest = 0;
    std::size_t begin = 0;
    for (std::size_t part = 0; part <= places.size(); ++part) {
      const std::size_t end = part < places.size() ? places[part] : many.size();
      double sum = 0;
      while (begin < end) sum += many[begin++];
      largest = std::max(largest, sum);
    }
    return largest;
  };
  double best = 1e9;
  for (std::size_t a = 1; a < many.size(); ++a)
    for (std::size_t b = a + 1; b < many.size(); ++b) best = std::min(best, most({a, b}));
  CHECK(most(balanced_cut(many, std::vector<std::size_t>{1, 2, 3, 4, 5, 6, 7, 8}, 3)) == Approx(best));
}
