// A graph that is cut into parts computes, part by part, what the whole computes; cuts are where they may be.
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/rounded_primitives.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <ronda/core/device_context.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/number.hpp>
#include <ronda/core/random.hpp>
#include <ronda/layers/graph_cut.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/layers/program.hpp>

using namespace ronda;
using namespace ronda::test;

namespace {

const Shape cut_input{3, 8, 8, 2};

Sequential branching() {
  return Sequential(Conv2d(4, 3, 1, 1), BatchNorm(), ReLU(), Residual(Sequential(Conv2d(4, 3, 1, 1), ReLU())), ReLU(),
                    MaxPool2d(2), Flatten(), Dense(6), ReLU(), Dense(3));
}

/// With blocks within which a value goes through a part: of images and of features.
Sequential long_branches() {
  const Sequential main(Conv2d(4, 3, 1, 1), ReLU(), Conv2d(4, 3, 1, 1), BatchNorm(), Conv2d(4, 1));
  return Sequential(Conv2d(4, 3, 1, 1), Residual(main), ReLU(), Flatten(), Dense(6),
                    Residual(Sequential(Dense(5), ReLU(), Dense(7), ReLU(), Dense(6))), ReLU(), Dense(3));
}

const Shape sequence_input{3, 6, 4};

Sequential of_sequences() {
  const Sequential main(Conv1d(4, 3, {.padding = 1}), LayerNorm(), ReLU(), Dense(4));
  return Sequential(Conv1d(4, 3, {.padding = 1}), Residual(main),
                    Residual(Sequential(LayerNorm(), MultiHeadAttention(2), Dense(4))), Flatten(), Dense(3));
}

/// The shortcut is a view of what a part from `dense1` to before `add1` receives, and its output.
Sequential with_flat_shortcut() {
  return Sequential(Conv2d(1, 3, 1, 1), Residual(Sequential(Flatten(), Dense(9), ReLU(), Dense(64)), Flatten()), ReLU(),
                    Dense(3));
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

/// Forward through all parts, then backward, from an output gradient of ones: of all parts the first half, then the
/// second of all.
PartByPart run_parts(const std::vector<Graph>& graphs, const Shape& shape, Primitives& primitives) {
  FirstPicker picker;
  std::deque<HostProgram> programs;
  std::vector<float> input = drawn(static_cast<std::size_t>(shape.count()));
  const ComputeDevice device = ComputeDevice::processor();
  std::vector<float> ones(static_cast<std::size_t>(shape[0]), 1.0F);
  const Tensor weights{std::span(ones)};
  const Pass pass{.stream = *device.stream, .weights = &weights, .on_ready = {}};
  std::vector<Tensor> passed{Tensor({shape, DType::float32, {}}, input.data())};
  std::deque<std::vector<float>> copies;
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    HostProgram& program = programs.emplace_back(graphs[i], primitives, picker,
                                                 ProgramOptions{.input_gradient = i > 0, .in_halves = i > 0});
    draw_parameters(program);
    REQUIRE(program.program().inputs().size() == passed.size());
    for (const GraphInput& each : program.program().inputs()) CHECK(each.field == (i == 0 ? "input" : received_field));
    const std::byte* const place = program.program().output_place().data();  // as messages are planned, before
    const Tensor output = program.program().forward(passed, pass);
    if (!graphs[i].parameters.empty()) CHECK(place == output.data());  // others are no stages
    passed = program.program().passed();
    passed.push_back(output);
    for (Tensor& tensor : passed) {  // inputs stay until all of backward is done
      std::vector<float>& copy = copies.emplace_back(tensor.as<float>().begin(), tensor.as<float>().end());
      tensor = Tensor(tensor.desc(), std::as_writable_bytes(std::span(copy)).data());
    }
  }
  PartByPart result;
  result.outputs.assign(passed.back().as<float>().begin(), passed.back().as<float>().end());
  for (float& number : programs.back().program().output_gradient().as<float>()) number = 1;
  for (std::size_t i = graphs.size(); i-- > 0;) {
    programs[i].program().backward_inputs(pass);
    if (i == 0) continue;
    std::vector<Tensor> gradients = programs[i - 1].program().passed_gradients();
    gradients.push_back(programs[i - 1].program().output_gradient());
    for (std::size_t k = 0; k < gradients.size(); ++k) reorder(programs[i].program().input_gradient(k), gradients[k]);
  }
  for (HostProgram& program : programs) {
    program.program().backward_parameters(pass);
    add_gradients(program, result.gradients);
  }
  return result;
}

/// Hears which parameters' gradients are complete.
struct Heard {
  std::vector<std::string> names;
  std::span<const Parameter> parameters;
  void mark_ready(ParameterId id, Stream&) { names.push_back(parameters[index_of(id)].name); }
};

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

TEST_CASE("a model may be cut where parameters lie on both sides, within a block too") {
  const Graph graph = build_graph(branching(), cut_input);
  CHECK(names_at(graph, cut_places(graph)) ==
        std::vector<std::string>{"batch_norm1", "conv2", "add1", "max_pool1", "flatten1", "dense1", "dense2"});
  CHECK(graph.nodes[cut_place(graph, "relu1")].name == "relu1");  // asked for, though a batch norm does its work
  constexpr std::size_t image = 3 * 8 * 8 * 4 * sizeof(float);
  CHECK(crossing_bytes(graph, cut_place(graph, "conv2")) == image);
  CHECK(crossing_bytes(graph, cut_place(graph, "add1")) == 2 * image);  // what is added, and the block's input
  require_mentions(message_of<InputError>([&] { static_cast<void>(cut_place(graph, "conv1")); }),
                   {"the first", "batch_norm1, conv2, add1"});
  require_mentions(message_of<InputError>([&] { static_cast<void>(cut_place(graph, "conv7")); }),
                   {"no such operation"});
}

TEST_CASE("a place for a cut is found again by its name: none is within an attention") {
  const Graph graph = build_graph(of_sequences(), sequence_input);
  const std::vector<std::size_t> places = cut_places(graph);
  for (const std::size_t place : places) CHECK(cut_place(graph, graph.nodes[place].name) == place);
  CHECK(names_at(graph, places) == std::vector<std::string>{"conv2", "layer_norm1", "relu1", "dense1", "add1",
                                                            "layer_norm2", "attention1", "dense2", "add2", "flatten1",
                                                            "dense3"});
}

TEST_CASE("of the places with the same parameters before them the one is taken where the fewest bytes cross") {
  const Graph graph = build_graph(branching(), cut_input);
  // Two images cross before add1, one before max_pool1, and a quarter of one before flatten1 and dense1.
  CHECK(names_at(graph, places_between_parameters(graph)) ==
        std::vector<std::string>{"batch_norm1", "conv2", "flatten1", "dense2"});
}

TEST_CASE("data may not have a field of the name by which stages receive") {
  Graph graph = build_graph(branching(), cut_input);
  graph.inputs.front().field = received_field;
  const std::vector<std::size_t> places{cut_place(graph, "conv2")};
  require_mentions(message_of<InputError>([&] { static_cast<void>(cut(graph, places)); }),
                   {"'received'", "another name"});
}

TEST_CASE("a parameter that is read on both sides lets no cut between") {
  const Dense twice(5);
  const Graph graph = build_graph(Sequential(Dense(5), twice, ReLU(), twice, Dense(3)), {2, 5});
  CHECK(names_at(graph, cut_places(graph)) == std::vector<std::string>{"dense2", "dense3"});
  require_mentions(message_of<InputError>([&] { static_cast<void>(cut_place(graph, "relu1")); }),
                   {"dense2.weight is read before it and behind it"});
}

namespace {

/// @param pairs  whether two cuts near each other are tried too
void check_parts(const Sequential& model, const Shape& shape, bool pairs) {
  const Graph graph = build_graph(model, shape);
  for (const auto& primitives : {make_reference_primitives(), make_onednn_primitives(1)}) {
    const PartByPart whole = run_parts({graph}, shape, *primitives);
    CHECK(whole.gradients.size() == graph.parameters.size());
    const auto check = [&](const std::vector<std::size_t>& places) {
      const PartByPart parts = run_parts(cut(graph, places), shape, *primitives);
      CHECK(farthest(parts.outputs, whole.outputs) < 1e-4);
      REQUIRE(parts.gradients.size() == whole.gradients.size());
      for (const auto& [name, numbers] : parts.gradients) {
        INFO(name);
        CHECK(farthest(numbers, whole.gradients.at(name)) < 1e-3);
      }
    };
    const std::vector<std::size_t> places = cut_places(graph);
    for (const std::size_t place : places) check({place});
    for (std::size_t i = 0; pairs && i < places.size(); ++i)
      for (std::size_t k = i + 1; k < std::min(i + 3, places.size()); ++k) check({places[i], places[k]});
    check({places[0], places[1], places[4], places[5]});
  }
}

}  // namespace

TEST_CASE("parts compute what the whole computes, forward and in the two halves of backward, wherever the cuts are") {
  check_parts(branching(), cut_input, false);
  check_parts(long_branches(), cut_input, true);
  check_parts(of_sequences(), sequence_input, true);
  check_parts(with_flat_shortcut(), cut_input, true);
}

TEST_CASE("gradients of the inputs come first, and those of parameters that can wait have the same bits") {
  const Graph graph = build_graph(long_branches(), cut_input);
  const ComputeDevice device = ComputeDevice::processor();
  std::vector<float> input = drawn(static_cast<std::size_t>(cut_input.count())), ones(3, 1.0F);
  const Tensor weights{std::span(ones)}, given({cut_input, DType::float32, {}}, input.data());
  const Pass pass{.stream = *device.stream, .weights = &weights, .on_ready = {}};
  for (const auto& primitives : {make_reference_primitives(), make_onednn_primitives(1)}) {
    FirstPicker picker;
    std::vector<std::vector<float>> of_input;
    std::vector<Gradients> of_parameters(2);
    for (const bool in_halves : {false, true}) {
      HostProgram program(graph, *primitives, picker, {.input_gradient = true, .in_halves = in_halves});
      draw_parameters(program);
      Heard heard{{}, program.parameters()};
      static_cast<void>(program.program().forward({&given, 1}, pass));
      for (float& number : program.program().output_gradient().as<float>()) number = 1;
      program.program().backward_inputs(pass.reporting(heard));
      const auto gradient = program.program().input_gradient(0).as<float>();
      of_input.emplace_back(gradient.begin(), gradient.end());
      const std::set<std::string> first(heard.names.begin(), heard.names.end());
      for (const char* name : {"conv1.weight", "conv3.weight", "dense1.weight", "dense5.weight"})
        CHECK(first.contains(name) != in_halves);
      CHECK(first.contains("batch_norm1.weight"));
      program.program().backward_parameters(pass.reporting(heard));
      CHECK(heard.names.size() == program.parameters().size());
      CHECK(std::set(heard.names.begin(), heard.names.end()).size() == program.parameters().size());
      add_gradients(program, of_parameters[in_halves ? 1 : 0]);
    }
    CHECK(of_input[0] == of_input[1]);
    CHECK(of_parameters[0] == of_parameters[1]);
  }
}

TEST_CASE("between the halves a dense layer with a ReLU keeps a gradient of its own, one without that of its output") {
  const Graph graph = build_graph(Sequential(Dense(5), ReLU(), Dense(4), Dense(3)), {2, 6});
  for (const auto& primitives : {make_reference_primitives(), make_onednn_primitives(1)}) {
    FirstPicker picker;
    const Program program(graph, nullptr, *primitives, picker, {.input_gradient = true, .in_halves = true});
    const auto buffer = [&](const char* owner) {
      return *std::ranges::find(program.buffer_requests(), owner, &BufferRequest::owner);
    };
    CHECK(buffer("dense1 between").bytes == 2 * 5 * sizeof(float));
    CHECK(buffer("dense2 between").bytes == 0);
    // Second halves have the order of the first ones. That of dense2 reads the gradient of its output; that of dense1,
    // which comes later, does not.
    CHECK(buffer("dense2 input gradient").used.back().to < buffer("dense3 input gradient").used.back().to);
  }
}

TEST_CASE("operations around others that do not forward halves do all of backward in one") {
  const Graph graph = build_graph(long_branches(), cut_input);
  const ComputeDevice device = ComputeDevice::processor();
  std::vector<float> input = drawn(static_cast<std::size_t>(cut_input.count())), ones(9, 1.0F);
  const Tensor weights{std::span(ones).first(3)}, given({cut_input, DType::float32, {}}, input.data());
  const Pass pass{.stream = *device.stream, .weights = &weights, .on_ready = {}};
  const auto primitives = make_rounded_primitives(DType::bfloat16);
  FirstPicker picker;
  std::vector<Gradients> gradients(2);
  for (const bool in_halves : {false, true}) {
    HostProgram program(graph, *primitives, picker, {.input_gradient = true, .in_halves = in_halves});
    const auto plain = [](const Tensor& tensor, std::vector<float>& numbers) {
      numbers.resize(static_cast<std::size_t>(tensor.desc().count()));
      return Tensor({tensor.desc().shape, DType::float32, {}}, numbers.data());
    };
    for (const Parameter& parameter : program.parameters()) {
      std::vector<float> values = drawn(static_cast<std::size_t>(parameter.value.desc().count()));
      convert(plain(parameter.value, values), parameter.value);
    }
    static_cast<void>(program.program().forward({&given, 1}, pass));
    convert(Tensor({Shape{3, 3}, DType::float32, {}}, ones.data()), program.program().output_gradient());
    program.program().backward_inputs(pass);
    for (const Parameter& parameter : program.parameters()) {
      std::vector<float>& numbers = gradients[in_halves ? 1 : 0][parameter.name];
      convert(parameter.gradient, plain(parameter.gradient, numbers));
    }
  }
  CHECK(gradients[0] == gradients[1]);
}

TEST_CASE("the most costly part is as cheap as can be") {
  const std::vector<double> costs{3, 1, 1, 5, 2, 2, 4};
  const std::vector<CutPlace> anywhere{{1}, {2}, {3}, {4}, {5}, {6}};
  CHECK(balanced_cut(costs, anywhere, 1).empty());
  CHECK(balanced_cut(costs, anywhere, 2) == std::vector<std::size_t>{4});
  CHECK(balanced_cut(costs, anywhere, 3) == std::vector<std::size_t>{3, 5});
  CHECK(balanced_cut(costs, std::vector<CutPlace>{{1}, {6}}, 3) == std::vector<std::size_t>{1, 6});
  // What a cut costs counts for both sides: 10 and 8 become 13 and 11, 12 and 6 become 12.5 and 6.5.
  CHECK(balanced_cut(costs, std::vector<CutPlace>{{4, 3}, {5, 0.5}}, 2) == std::vector<std::size_t>{5});
  require_mentions(
      message_of<InputError>([&] { static_cast<void>(balanced_cut(costs, std::vector<CutPlace>{{2}}, 3)); }),
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
  const std::vector<CutPlace> all{{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}};
  CHECK(most(balanced_cut(many, all, 3)) == Approx(best));
}
