// What planning promises: names, fusion, memory, file layouts, initial values.
#include "support/catch.hpp"
#include "support/plain_model.hpp"
#include "support/seed.hpp"

#include <ronda/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

using namespace ronda;
using namespace ronda::test;

TEST_CASE("parameters are numbered by kind in order of use, and neighbours become one operation") {
  const auto primitives = make_reference_primitives();
  FirstPicker picker;
  const Sequential model(Conv2d(4, 3), ReLU(), MaxPool2d(2), Conv2d(5, 3), ReLU(), Flatten(), Dense(6), ReLU(),
                         Dense(3));
  const Program program(build_graph(model, {2, 12, 12, 1}), nullptr, *primitives, picker);
  CHECK(program.output().shape == Shape{2, 3});
  std::vector<std::string> names;
  for (const auto& request : program.parameters()) names.push_back(request.name);
  CHECK(names == std::vector<std::string>{"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "dense1.weight",
                                          "dense1.bias", "dense2.weight", "dense2.bias"});
  CHECK(program.lines().size() == 4);  // pooling and ReLUs are part of their layers
  CHECK(program.parameters()[0].desc.shape == Shape{4, 1, 3, 3});
  CHECK(program.parameters()[4].desc.shape == Shape{6, 5 * 3 * 3});
}

TEST_CASE("neighbours stay apart where somebody else reads what lies between") {
  const Function both([](Value x, GraphBuilder& b) {
    const Value y = Dense(4).build(x, b);
    return b.apply(AddSpec{}, {y, ReLU().build(y, b)});
  });
  const auto primitives = make_reference_primitives();
  FirstPicker picker;
  CHECK(Program(build_graph(both, {2, 3}), nullptr, *primitives, picker).costs().size() == 3);
  const Sequential fused(Dense(4), Residual(Dense(4)), ReLU());
  const auto costs = Program(build_graph(fused, {2, 3}), nullptr, *primitives, picker).costs();
  REQUIRE(costs.size() == 3);  // the sum does the ReLU's work
  CHECK(costs[2].name == "add1");
  CHECK(costs[0].flops == 2 * 2 * 3 * 4);
  CHECK(costs[0].parameters == 3 * 4 + 4);
}

TEST_CASE("shapes that do not fit are the user's error, and say so") {
  CHECK_THROWS_AS(build_graph(Sequential(Conv2d(4, 5)), {2, 4, 4, 1}), InputError);
  CHECK_THROWS_AS(build_graph(Sequential(Dense(3)), {2, 4, 4, 1}), InputError);
  CHECK_THROWS_AS(build_graph(Sequential(Flatten(), Conv2d(3, 1)), {2, 4, 4, 1}), InputError);
  CHECK_THROWS_AS(build_graph(Residual(Dense(3)), {2, 4}), InputError);
  CHECK_THROWS_AS(build_graph(Concat(Conv2d(3, 3), Conv2d(3, 1)), {2, 4, 4, 1}), InputError);
  const Function other([](Value, GraphBuilder& b) { return b.input("tokens"); });
  CHECK_THROWS_AS(build_graph(other, {2, 4}), InputError);
}

namespace {

/// Whether buffers that are in use at the same time lie apart.
void check_apart(std::span<const BufferRequest> requests, const BufferPlan& plan) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    CHECK(plan.offsets[i] % Buffer::alignment == 0);
    CHECK(plan.offsets[i] + requests[i].bytes <= plan.bytes);
    for (std::size_t j = i + 1; j < requests.size(); ++j) {
      if (!requests[i].overlaps(requests[j]) || requests[i].bytes == 0 || requests[j].bytes == 0) continue;
      INFO(requests[i].owner << " and " << requests[j].owner);
      CHECK((plan.offsets[i] + requests[i].bytes <= plan.offsets[j] ||
             plan.offsets[j] + requests[j].bytes <= plan.offsets[i]));
    }
  }
}

std::size_t bytes_of(const Layer& model, const Shape& input, Mode mode = Mode::training) {
  const auto primitives = make_reference_primitives();
  FirstPicker picker;
  const SoftmaxCrossEntropy loss;
  const Program program(build_graph(model, input), mode == Mode::training ? &loss : nullptr, *primitives, picker,
                        {.mode = mode});
  check_apart(program.buffer_requests(), place_buffers(program.buffer_requests()));
  return program.buffer_plan().bytes;
}

}  // namespace

TEST_CASE("buffers that are in use at the same time lie apart, and others share memory") {
  const std::size_t kib = 1024;
  // Without activations backward reads the inputs alone: 16 KiB each, and two gradients.
  Sequential chain;
  for (int i = 0; i < 8; ++i) chain.add(Dense(64));
  CHECK(bytes_of(chain, {64, 64}) <= (7 + 1) * 16 * kib + 2 * 16 * kib);
  // Evaluating keeps two: what a layer reads, and what it gives.
  CHECK(bytes_of(chain, {64, 64}, Mode::evaluation) <= 2 * 16 * kib + 16 * kib);  // and a layer's scratch
  // Sums keep nothing for backward, and are written where a term was.
  Sequential residual;
  for (int i = 0; i < 4; ++i) residual.add(Residual(Dense(64)));
  CHECK(bytes_of(residual, {64, 64}) <= (4 + 1) * 16 * kib + 3 * 16 * kib);
}

TEST_CASE("buffers of random uses lie apart") {
  const RngKey key(test::seed(), Purpose::test, 5);
  std::uint64_t draw = 0;
  for (int game = 0; game < 200; ++game) {
    std::vector<BufferRequest> requests;
    for (std::uint64_t i = 0; i < 1 + key.below(30, draw++ % 4096); ++i) {
      BufferRequest request{.owner = "b" + std::to_string(i), .bytes = key.below(1000, draw++)};
      const auto from = static_cast<std::uint32_t>(key.below(20, draw++));
      request.used.push_back({from, from + static_cast<std::uint32_t>(key.below(6, draw++))});
      if (key.below(3, draw++) == 0) request.used.push_back({from + 10, from + 12});
      requests.push_back(request);
    }
    check_apart(requests, place_buffers(requests));
  }
}

TEST_CASE("a model is planned as often as wanted, and each has memory of its own") {
  const auto primitives = make_reference_primitives();
  FirstPicker picker;
  const Sequential model(Dense(3), ReLU(), Dense(2));
  PlainModel first(model, {2, 3}, *primitives, picker, 1), second(model, {2, 3}, *primitives, picker, 2);
  std::vector<float> x{1, 2, 3, 4, 5, 6};
  const Tensor input({{2, 3}, DType::float32, {}}, x.data());
  const auto values = [](const Tensor& tensor) {
    return std::vector<float>(tensor.as<float>().begin(), tensor.as<float>().end());
  };
  const auto before = values(first.forward(input));
  CHECK(before != values(second.forward(input)));
  CHECK(before == values(first.forward(input)));
}

TEST_CASE("an evaluating program gives what a training one gives") {
  const auto primitives = make_onednn_primitives(1);
  FirstPicker picker;
  const Sequential model(Conv2d(16, 3), ReLU(), MaxPool2d(2), Residual(Conv2d(16, 3, 1, 1)), Flatten(), Dense(4));
  PlainModel training(build_graph(model, {2, 8, 8, 1}), *primitives, picker),
      evaluating(build_graph(model, {2, 8, 8, 1}), *primitives, picker, 7, false, Mode::evaluation);
  std::vector<float> x(2 * 8 * 8);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) / 7;
  const Tensor input({{2, 8, 8, 1}, DType::float32, {}}, x.data());
  const auto expected = training.forward(input).as<float>(), found = evaluating.forward(input).as<float>();
  CHECK(std::ranges::equal(expected, found));
  CHECK(evaluating.program().buffer_plan().bytes < training.program().buffer_plan().bytes);
}

TEST_CASE("initial values depend on seed and name alone, and have the promised spread") {
  const auto make = [](std::string name, const Layout& layout, std::uint64_t seed, Buffer& memory) {
    const TensorDesc desc{Shape{64, 100}, DType::float32, layout};
    memory = Buffer::host(desc.bytes());
    Parameter parameter{.id = {},
                        .name = std::move(name),
                        .value = Tensor(desc, memory.data()),
                        .gradient = {},
                        .master = {},
                        .flattened = {}};
    initialize(parameter, Initializer::he_normal, 100, 64, seed);
    return to_file(parameter, parameter.value);
  };
  Buffer a, b, c, d;
  const auto plain = make("dense1.weight", {}, 1, a);
  CHECK(plain == make("dense1.weight", Layout::parse("ba16a"), 1, b));
  CHECK(plain != make("dense2.weight", {}, 1, c));
  CHECK(plain != make("dense1.weight", {}, 2, d));
  double sum = 0, squares = 0;
  for (const float x : plain) sum += x, squares += double{x} * x;
  const double count = static_cast<double>(plain.size());
  CHECK(std::abs(sum / count) < 0.01);                       // 5 standard errors of 0.14 / 80
  CHECK(squares / count == Approx(2.0 / 100).epsilon(0.1));  // standard error of a variance: 1.8 %
  std::vector<float> values(3, 7.0F);
  Parameter factor{.id = {},
                   .name = "layer_norm1.weight",
                   .value = Tensor(std::span(values)),
                   .gradient = {},
                   .master = {},
                   .flattened = {}};
  initialize(factor, Initializer::ones, 1, 1, 1);
  CHECK(values == std::vector<float>(3, 1.0F));
  initialize(factor, Initializer::ones, 0, 0, 1);  // a bias of a model that is to start with ones
  CHECK(values == std::vector<float>(3, 0.0F));
  const Graph norm = build_graph(LayerNorm(), {2, 3});
  CHECK(norm.parameters[0].initializer == Initializer::ones);
  CHECK(norm.parameters[0].fan_in == 1);
  CHECK(norm.parameters[1].fan_in == 0);
  CHECK_THROWS_AS(parse_initializer("he"), InputError);
  CHECK(parse_initializer("kaiming_uniform") == Initializer::he_uniform);
}
