// Ranks that each compute a part of split operations compute together what one computes alone: ranks are threads here.
#include "support/catch.hpp"
#include "support/message.hpp"
#include "layers/comparison.hpp"

#include <barrier>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/random.hpp>
#include <ronda/layers/graph_split.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/layers/program.hpp>

using namespace ronda;
using namespace ronda::test;

namespace {

/// What the threads tell each other: all read all others' numbers between two barriers.
class ThreadParts {
 public:
  explicit ThreadParts(std::size_t count) : given_(count), barrier_(static_cast<std::ptrdiff_t>(count)) {}

  class Part final : public PartExchange {
   public:
    Part(ThreadParts& all, std::size_t part) : all_(all), part_(part) {}
    void add_up(std::span<float> numbers) override {
      all_.given_[part_] = numbers;
      all_.barrier_.arrive_and_wait();
      std::vector<float> sums(numbers.size());
      for (const auto& given : all_.given_) {
        if (given.size() != numbers.size()) throw LogicError("parts sum different counts");
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += given[i];
      }
      all_.barrier_.arrive_and_wait();
      std::ranges::copy(sums, numbers.begin());
    }
    void gather(std::span<const float> mine, std::span<float> all, std::span<const std::size_t> widths) override {
      all_.given_[part_] = mine;
      all_.barrier_.arrive_and_wait();
      const std::size_t whole = std::accumulate(widths.begin(), widths.end(), std::size_t{0});
      std::size_t first = 0;
      for (std::size_t part = 0; part < widths.size(); first += widths[part++])
        for (std::size_t row = 0; row * whole < all.size(); ++row)
          std::copy_n(all_.given_[part].begin() + static_cast<std::ptrdiff_t>(row * widths[part]), widths[part],
                      all.begin() + static_cast<std::ptrdiff_t>(row * whole + first));
      all_.barrier_.arrive_and_wait();
    }

   private:
    ThreadParts& all_;
    std::size_t part_;
  };

 private:
  std::vector<std::span<const float>> given_;
  std::barrier<> barrier_;
};

using ByName = std::map<std::string, std::vector<float>>;

std::vector<float> drawn_for_split(const std::string& name, std::size_t count) {
  const RngKey key(7, Purpose::test, name);
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = key.uniform(i) - 0.4F;
  return numbers;
}

struct SplitComputed {
  std::vector<float> outputs;
  ByName gradients;
};

/// How a model is computed: by the plain loops, by the library's first candidates, or by a mixture of them.
struct Computing {
  bool library = false;
  std::optional<std::uint64_t> mixture = {};
};

/// Forward and backward; the output's gradient is drawn.
/// @param values  of the parameters, as files hold them
SplitComputed compute_split(const Graph& graph, const ByName& values, PartExchange* parts, const Computing& computing) {
  const auto primitives = computing.library ? make_onednn_primitives(1) : make_reference_primitives();
  FirstPicker first;
  MixingPicker mixing(computing.mixture.value_or(0));
  Picker& picker = computing.mixture ? static_cast<Picker&>(mixing) : first;
  HostProgram program(graph, *primitives, picker, {.input_gradient = true});
  for (const Parameter& parameter : program.parameters())
    from_file(parameter, values.at(parameter.name), parameter.value);
  const ComputeDevice device = ComputeDevice::processor();
  const TensorDesc described = program.program().input_desc(0);
  const Buffer memory = Buffer::host(described.bytes());
  const Tensor given(described, memory.data());
  std::ranges::copy(drawn_for_split("input", static_cast<std::size_t>(described.count())), given.as<float>().begin());
  const Pass pass{.stream = *device.stream, .parts = parts, .on_ready = {}};
  const Tensor outputs = program.program().forward({&given, 1}, pass);
  SplitComputed computed{.outputs = {outputs.as<float>().begin(), outputs.as<float>().end()}, .gradients = {}};
  const auto gradient = program.program().output_gradient().as<float>();
  std::ranges::copy(drawn_for_split("gradient", gradient.size()), gradient.begin());
  program.program().backward(pass);
  for (const Parameter& parameter : program.parameters())
    computed.gradients[parameter.name] = to_file(parameter, parameter.gradient);
  const auto of_input = program.program().input_gradient(0).as<float>();
  computed.gradients["input"] = {of_input.begin(), of_input.end()};
  return computed;
}

void check_split_near(const std::string& what, const std::vector<float>& found, const std::vector<float>& expected) {
  INFO(what);
  REQUIRE(found.size() == expected.size());
  float largest = 0, apart = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    apart = std::max(apart, std::abs(found[i] - expected[i]));
  }
  CHECK(largest > 0);
  CHECK(apart <= 1e-5F * largest);
}

void check_split(const Layer& model, const Shape& input, const std::vector<SplitChoice>& choices, std::size_t count,
                 const Computing& computing) {
  const Graph whole = build_graph(model, input);
  const SplitGraph parts = split(whole, choices, count);
  ByName values;
  for (const GraphParameter& parameter : whole.parameters)
    values[parameter.name] = drawn_for_split(parameter.name, static_cast<std::size_t>(parameter.shape.count()));
  const SplitComputed expected = compute_split(whole, values, nullptr, {.library = computing.library});

  ThreadParts threads(count);
  std::vector<SplitComputed> found(count);
  std::vector<std::thread> running;
  for (std::size_t part = 0; part < count; ++part)
    running.emplace_back([&, part] {
      ByName mine = values;
      for (std::size_t id = 0; id < whole.parameters.size(); ++id) {
        const auto& slices = parts.slices[id];
        if (!slices) continue;
        std::vector<float> slice(slices->count(part));
        slices->take(values.at(whole.parameters[id].name), part, slice);
        mine[whole.parameters[id].name] = slice;
      }
      ThreadParts::Part exchange(threads, part);
      found[part] = compute_split(parts.parts[part], mine, &exchange, computing);
    });
  for (std::thread& thread : running) thread.join();

  for (std::size_t part = 0; part < count; ++part) {
    INFO("part " << part << " of " << count);
    check_split_near("outputs", found[part].outputs, expected.outputs);
    CHECK(found[part].outputs == found[0].outputs);
    check_split_near("gradient of the input", found[part].gradients.at("input"), expected.gradients.at("input"));
  }
  for (std::size_t id = 0; id < whole.parameters.size(); ++id) {
    const std::string& name = whole.parameters[id].name;
    const auto& slices = parts.slices[id];
    std::vector<float> gradient(values.at(name).size());
    for (std::size_t part = 0; part < count; ++part)
      if (slices && slices->count(part) > 0)
        slices->put(found[part].gradients.at(name), part, gradient);
      else if (!slices)
        CHECK(found[part].gradients.at(name) == found[0].gradients.at(name));
    check_split_near(name, slices ? gradient : found[0].gradients.at(name), expected.gradients.at(name));
  }
}

void check_on_all_ranks(const Layer& model, const Shape& input, const std::vector<SplitChoice>& choices) {
  for (const std::size_t count : {1, 2, 3, 4})
    for (const bool library : {false, true}) check_split(model, input, choices, count, {library});
}

constexpr SplitBy by_columns = SplitBy::columns, by_rows = SplitBy::rows;

Sequential split_perceptron() { return Sequential(Dense(13), ReLU(), Dense(9), Tanh(), Dense(5)); }
Sequential split_images() {
  return Sequential(Conv2d(6, 3), ReLU(), MaxPool2d(2), Conv2d(7, 3, 1, 1), ReLU(), Flatten(), Dense(10), ReLU(),
                    Dense(4));
}

}  // namespace

TEST_CASE("two dense layers, by columns and by rows, are one's") {
  check_on_all_ranks(split_perceptron(), {6, 11}, {{"dense1", by_columns}, {"dense2", by_rows}});
  const SplitGraph graphs = split(build_graph(split_perceptron(), Shape{6, 11}),
                                  std::vector<SplitChoice>{{"dense1", by_columns}, {"dense2", by_rows}}, 2);
  CHECK(graphs.parts[0].nodes.size() == 5);  // nothing is gathered, nothing taken
}

TEST_CASE("a dense layer by columns is gathered, and one by rows takes its part, where neighbours are whole") {
  check_on_all_ranks(split_perceptron(), {6, 11}, {{"dense2", by_columns}});
  check_on_all_ranks(split_perceptron(), {6, 11}, {{"dense2", by_rows}});
  check_on_all_ranks(split_perceptron(), {6, 11}, {{"dense3", by_columns}});
  check_on_all_ranks(split_perceptron(), {6, 11},
                     {{"dense1", by_columns}, {"dense2", by_columns}, {"dense3", by_rows}});
  check_on_all_ranks(split_perceptron(), {6, 11}, {{"dense1", by_rows}, {"dense2", by_rows}, {"dense3", by_rows}});
}

TEST_CASE("dense layers on steps, and without biases") {
  check_on_all_ranks(Sequential(Dense(8, false), GELU(), Dense(6, false)), {3, 5, 7},
                     {{"dense1", by_columns}, {"dense2", by_rows}});
}

TEST_CASE("convolutions by channels, with pooling and a flatten between") {
  check_on_all_ranks(split_images(), {3, 8, 8, 4}, {{"conv1", by_columns}, {"conv2", by_rows}});
  check_on_all_ranks(split_images(), {3, 8, 8, 4}, {{"conv1", by_columns}});
  check_on_all_ranks(split_images(), {3, 8, 8, 4}, {{"conv2", by_columns}, {"dense1", by_rows}});
  check_on_all_ranks(split_images(), {3, 8, 8, 4}, {{"conv1", by_rows}, {"conv2", by_columns}, {"dense1", by_columns}});
}

TEST_CASE("a convolution by rows, with a pooling that leaves some of its outputs out, whatever is picked") {
  const Sequential model(Conv2d(64, 3), ReLU(), MaxPool2d(2), Flatten(), Dense(5));
  for (std::uint64_t mixture = 0; mixture < 12; ++mixture)
    for (const SplitBy by : {by_rows, by_columns})
      check_split(model, {3, 13, 13, 32}, {{"conv1", by}}, 2, {true, mixture});
}

TEST_CASE("a value that several read is gathered once") {
  const Sequential model(Dense(12), Residual(Sequential(Dense(8), ReLU(), Dense(12))), ReLU(), Dense(5));
  check_on_all_ranks(model, {4, 6}, {{"dense2", by_columns}, {"dense3", by_rows}});
  check_on_all_ranks(model, {4, 6}, {{"dense1", by_columns}, {"dense2", by_columns}, {"dense3", by_columns}});
}

TEST_CASE("an attention by heads") {
  check_on_all_ranks(Sequential(Dense(20), MultiHeadAttention(5, {.causal = true}), Dense(3)), {2, 6, 7},
                     {{"attention1", SplitBy::heads}});
}

TEST_CASE("what cannot be split is refused by name") {
  const auto refusal = [](const Layer& model, const Shape& input, const std::vector<SplitChoice>& choices) {
    return message_of<InputError>([&] { static_cast<void>(split(build_graph(model, input), choices, 4)); });
  };
  require_mentions(refusal(split_perceptron(), {6, 11}, {{"dense9", by_columns}}),
                   {"'dense9'", "no such", "dense1, dense2 or"});
  require_mentions(refusal(split_perceptron(), {6, 11}, {{"relu1", by_columns}}), {"'relu1'", "no dense layer"});
  require_mentions(refusal(split_perceptron(), {6, 11}, {{"dense1", by_columns}, {"dense1", by_rows}}), {"twice"});
  require_mentions(refusal(split_perceptron(), {6, 11}, {{"dense1", SplitBy::heads}}), {"heads"});
  require_mentions(refusal(Sequential(Dense(3)), {6, 11}, {{"dense1", by_columns}}), {"3 outputs", "4 ranks"});
  require_mentions(refusal(Sequential(Dense(3)), {6, 2}, {{"dense1", by_rows}}), {"2 inputs", "4 ranks"});
  require_mentions(refusal(Sequential(Conv2d(4, 3, {.groups = 2})), {2, 5, 5, 4}, {{"conv1", by_columns}}), {"groups"});
  const Dense shared(11);
  require_mentions(refusal(Sequential(shared, ReLU(), shared), {6, 11}, {{"dense1", by_columns}}), {"dense1.weight"});
  require_mentions(message_of<InputError>([] { static_cast<void>(parse_split_choice("dense1")); }), {"dense1=columns"});
  require_mentions(message_of<InputError>([] { static_cast<void>(parse_split_choice("dense1=both")); }), {"rows"});
  CHECK(text_of(parse_split_choice("dense1=rows")) == "dense1=rows");
}
