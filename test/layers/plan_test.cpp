// What planning promises: names, fusion, memory, file layouts, initial values.
#include "support/catch.hpp"
#include "support/plain_model.hpp"

#include <ronda/runtime/core/error.hpp>

#include <cmath>

using namespace ronda;
using namespace ronda::test;

TEST_CASE("parameters are numbered by kind in order of use, and neighbours become one operation") {
  const auto primitives = make_reference_primitives();
  FirstPicker picker;
  Planner planner(*primitives, picker, Mode::training);
  Sequential model(Conv2d(4, 3), ReLU(), MaxPool2d(2), Conv2d(5, 3), ReLU(), Flatten(), Dense(6), ReLU(), Dense(3));
  const TensorDesc output = model.plan({Shape{2, 12, 12, 1}, DType::float32, {}}, planner);
  CHECK(output.shape == Shape{2, 3});
  std::vector<std::string> names;
  for (const auto& request : planner.parameters()) names.push_back(request.name);
  CHECK(names == std::vector<std::string>{"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "dense1.weight",
                                          "dense1.bias", "dense2.weight", "dense2.bias"});
  CHECK(planner.notes().size() == 4);  // pooling and ReLUs are part of their layers
  CHECK(planner.parameters()[0].desc.shape == Shape{4, 1, 3, 3});
  CHECK(planner.parameters()[4].desc.shape == Shape{6, 5 * 3 * 3});
  CHECK_THROWS_AS(model.plan({Shape{2, 12, 12, 1}, DType::float32, {}}, planner), LogicError);
}

TEST_CASE("shapes that do not fit are the user's error, and say so") {
  const auto primitives = make_reference_primitives();
  FirstPicker picker;
  Planner planner(*primitives, picker, Mode::training);
  const TensorDesc image{Shape{2, 4, 4, 1}, DType::float32, {}};
  Sequential too_small(Conv2d(4, 5));
  CHECK_THROWS_AS(too_small.plan(image, planner), InputError);
  Sequential not_flat(Dense(3));
  CHECK_THROWS_AS(not_flat.plan(image, planner), InputError);
  Sequential flat(Flatten(), Conv2d(3, 1));
  CHECK_THROWS_AS(flat.plan(image, planner), InputError);
}

TEST_CASE("buffers of a pass keep apart, gradients take turns, scratch is shared") {
  const std::vector<BufferRequest> requests{{"a", 100, Lifetime::pass},   {"b", 300, Lifetime::gradient},
                                            {"c", 50, Lifetime::scratch}, {"d", 200, Lifetime::gradient},
                                            {"e", 70, Lifetime::scratch}, {"f", 10, Lifetime::gradient},
                                            {"g", 100, Lifetime::pass}};
  const BufferPlan plan = place_buffers(requests);
  CHECK(plan.offsets[2] == plan.offsets[4]);
  CHECK(plan.offsets[1] == plan.offsets[5]);
  CHECK(plan.offsets[1] != plan.offsets[3]);
  CHECK(plan.offsets[6] >= plan.offsets[0] + 100);
  CHECK(plan.scratch_bytes == 70);
  CHECK(plan.gradient_bytes == 500);
  for (const auto offset : plan.offsets) CHECK(offset % Buffer::alignment == 0);
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
  CHECK_THROWS_AS(parse_initializer("he"), InputError);
  CHECK(parse_initializer("kaiming_uniform") == Initializer::he_uniform);
}
