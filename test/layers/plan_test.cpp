// What planning promises: names, fusion, memory, file layouts, initial values.
#include "support/catch.hpp"
#include "support/plain_model.hpp"

#include <ronda/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <set>

using namespace ronda;
using namespace ronda::test;

TEST_CASE("parameters are numbered by kind in order of use, and neighbours become one operation") {
  const auto primitives = make_reference_primitives();
  FirstPicker picker;
  Planner planner(*primitives, picker, Mode::training);
  Sequential model(Conv2d(4, 3), ReLU(), MaxPool2d(2), Conv2d(5, 3), ReLU(), Flatten(), Dense(6), ReLU(), Dense(3));
  const TensorDesc output = planner.plan(model, {Shape{2, 12, 12, 1}, DType::float32, {}});
  CHECK(output.shape == Shape{2, 3});
  std::vector<std::string> names;
  for (const auto& request : planner.parameters()) names.push_back(request.name);
  CHECK(names == std::vector<std::string>{"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "dense1.weight",
                                          "dense1.bias", "dense2.weight", "dense2.bias"});
  CHECK(planner.notes().size() == 4);  // pooling and ReLUs are part of their layers
  CHECK(planner.parameters()[0].desc.shape == Shape{4, 1, 3, 3});
  CHECK(planner.parameters()[4].desc.shape == Shape{6, 5 * 3 * 3});
  CHECK_THROWS_AS(planner.plan(model, {Shape{2, 12, 12, 1}, DType::float32, {}}), LogicError);
}

TEST_CASE("shapes that do not fit are the user's error, and say so") {
  const auto primitives = make_reference_primitives();
  FirstPicker picker;
  Planner planner(*primitives, picker, Mode::training);
  const TensorDesc image{Shape{2, 4, 4, 1}, DType::float32, {}};
  Sequential too_small(Conv2d(4, 5));
  CHECK_THROWS_AS(planner.plan(too_small, image), InputError);
  Sequential not_flat(Dense(3));
  CHECK_THROWS_AS(planner.plan(not_flat, image), InputError);
  Sequential flat(Flatten(), Conv2d(3, 1));
  CHECK_THROWS_AS(planner.plan(flat, image), InputError);
}

TEST_CASE("buffers of a pass keep apart, gradients of a chain take turns, scratch is shared") {
  const auto primitives = make_reference_primitives();
  FirstPicker picker;
  Planner planner(*primitives, picker, Mode::training);
  planner.set_input_gradient_needed(true);
  Sequential model(Dense(30), Sequential(Dense(200), ReLU(), Dense(50)), Dense(60), Dense(3));
  SoftmaxCrossEntropy loss;
  planner.plan(loss, planner.plan(model, {Shape{2, 100}, DType::float32, {}}));
  const BufferPlan plan = place_buffers(planner.buffers());
  const auto requests = planner.buffers();
  std::vector<std::size_t> gradients, ends;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    CHECK(plan.offsets[i] % Buffer::alignment == 0);
    if (requests[i].lifetime == Lifetime::gradient) gradients.push_back(plan.offsets[i]);
    if (requests[i].lifetime != Lifetime::pass || requests[i].bytes == 0) continue;
    for (const std::size_t end : ends) CHECK(plan.offsets[i] >= end);
    ends.push_back(plan.offsets[i] + requests[i].bytes);
  }
  REQUIRE(gradients.size() == 6);
  CHECK(gradients[0] != gradients[1]);
  for (std::size_t i = 2; i < gradients.size(); ++i) CHECK(gradients[i] == gradients[i % 2]);
  CHECK(plan.gradient_bytes == 2 * sizeof(float) * (200 + 50));  // inputs of the third and the fourth
}

TEST_CASE("scratch of a composite is its own beside its layers', and a layer's two are two") {
  class Scratching final : public Layer {
   public:
    explicit Scratching(std::unique_ptr<Layer> inner = nullptr) : inner_(std::move(inner)) {}
    [[nodiscard]] std::string_view kind() const noexcept override { return "scratching"; }
    TensorDesc plan(const TensorDesc& input, Planner& planner) override {
      planner.buffer("a", 100, Lifetime::scratch);
      planner.buffer("b", 10, Lifetime::scratch);
      return inner_ ? planner.plan(*inner_, input) : input;
    }
    void bind(const Bindings&) override {}
    const Tensor& forward(const Tensor& input, const Pass&) override { return input; }
    const Tensor& backward(const Tensor& gradient, const Pass&) override { return gradient; }

   private:
    std::unique_ptr<Layer> inner_;
  };
  const auto primitives = make_reference_primitives();
  FirstPicker picker;
  Planner planner(*primitives, picker, Mode::training);
  Sequential model(Scratching(std::make_unique<Scratching>()), Scratching());
  planner.plan(model, {Shape{2, 3}, DType::float32, {}});
  const std::vector<std::size_t> offsets = place_buffers(planner.buffers()).offsets;
  CHECK(std::set(offsets.begin(), offsets.begin() + 4).size() == 4);
  CHECK(std::equal(offsets.begin(), offsets.begin() + 2, offsets.begin() + 4));
}

TEST_CASE("a layer is planned once, and so is a loss, wherever they are") {
  class Own final : public Layer {
   public:
    [[nodiscard]] std::string_view kind() const noexcept override { return "own"; }
    TensorDesc plan(const TensorDesc& input, Planner&) override { return input; }
    void bind(const Bindings&) override {}
    const Tensor& forward(const Tensor& input, const Pass&) override { return input; }
    const Tensor& backward(const Tensor& gradient, const Pass&) override { return gradient; }
  };
  const auto primitives = make_reference_primitives();
  FirstPicker picker;
  const TensorDesc features{Shape{2, 3}, DType::float32, {}};
  Dense dense(3);
  Own own;
  SoftmaxCrossEntropy loss;
  for (const bool first : {true, false}) {
    Planner planner(*primitives, picker, Mode::training);
    const auto plan_all = {std::function<void()>([&] { planner.plan(dense, features); }),
                           std::function<void()>([&] { planner.plan(own, features); }),
                           std::function<void()>([&] { planner.plan(loss, features); })};
    for (const auto& plan : plan_all)
      if (first)
        plan();
      else
        CHECK_THROWS_AS(plan(), LogicError);
    CHECK(planner.parameters().size() == (first ? 2 : 0));
  }
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
