// Composites, nested at random: gradients against finite differences. Sums where values have several readers, and
// parameters that are shared, are what can go wrong.
#include <memory>
#include <utility>

#include "../../apps/models.hpp"
#include "../../examples/custom_loop/prelu.hpp"
#include "layers/comparison.hpp"
#include "support/gradient_probe.hpp"
#include "support/message.hpp"
#include "support/plain_model.hpp"
#include "support/sanitizer.hpp"
#include "support/seed.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

/// Negates, with memory of its own from forward to backward.
class Negate final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "negate"; }
  Value build(Value x, GraphBuilder& b) const override { return b.apply(std::make_shared<Loops>(), {x}); }

 private:
  class Loops final : public CustomOperation {
   public:
    [[nodiscard]] std::string_view kind() const noexcept override { return "negate"; }
    [[nodiscard]] Shape output(std::span<const Shape> inputs) const override { return inputs[0]; }
    [[nodiscard]] std::size_t kept_bytes(std::span<const Shape>) const override { return sizeof(float); }
    void forward(const CustomArguments& arguments, const Pass&) const override {
      *reinterpret_cast<float*>(arguments.kept()) = -1;
      for (std::size_t i = 0; i < arguments.input().size(); ++i) arguments.output()[i] = -arguments.input()[i];
    }
    void backward(const CustomArguments& arguments, const Pass&) const override {
      const float sign = *reinterpret_cast<const float*>(arguments.kept());
      for (std::size_t i = 0; i < arguments.input_gradient().size(); ++i)
        arguments.input_gradient()[i] = sign * arguments.output_gradient()[i];
    }
  };
};

constexpr std::int64_t features = 5;

/// A random layer of (N, features).
class Garden {
 public:
  explicit Garden(std::uint64_t seed) : key_(seed, Purpose::test, 1), shared_(std::make_shared<Dense>(features)) {}

  std::shared_ptr<const Layer> layer(int depth) {
    switch (depth == 0 ? below(5) : 5 + below(5)) {
      case 0: return std::make_shared<Dense>(features, below(2) == 0);
      case 1: return std::make_shared<Function>([](Value x, GraphBuilder&) { return x; });
      case 2: return std::make_shared<Negate>();
      case 3: return shared_;
      case 4: return std::make_shared<ReLU>();
      case 5: return sum(1, true, depth);
      case 6: return sum(2, below(2) == 0, depth);
      case 7: return sum(3, below(2) == 0, depth);
      case 8: return joined(depth);
      default: return sequential(1 + below(4), depth);
    }
  }
  std::shared_ptr<Sequential> sequential(std::uint64_t count, int depth) {
    auto model = std::make_shared<Sequential>();
    for (std::uint64_t i = 0; i < count; ++i) model->add(child(depth));
    return model;
  }

 private:
  std::shared_ptr<const Layer> child(int depth) {
    return layer(static_cast<int>(below(static_cast<std::uint64_t>(depth))));
  }
  /// The sum of its children's outputs, and of its input where it has a shortcut.
  std::shared_ptr<const Layer> sum(int count, bool shortcut, int depth) {
    std::vector<std::shared_ptr<const Layer>> children;
    for (int i = 0; i < count; ++i) children.push_back(child(depth));
    return std::make_shared<Function>([children, shortcut](Value x, GraphBuilder& b) {
      std::vector<Value> terms;
      if (shortcut) terms.push_back(x);
      for (const auto& layer : children) terms.push_back(layer->build(x, b));
      return terms.size() == 1 ? terms.front() : b.apply(AddSpec{}, terms);
    });
  }
  std::shared_ptr<const Layer> joined(int depth) {
    const auto left = child(depth), right = child(depth), narrow = std::shared_ptr<const Layer>(new Dense(features));
    return std::make_shared<Function>([=](Value x, GraphBuilder& b) {
      return narrow->build(b.apply(ConcatSpec{1}, {left->build(x, b), x, right->build(x, b)}), b);
    });
  }
  std::uint64_t below(std::uint64_t end) { return key_.below(end, count_++); }

  RngKey key_;
  std::uint64_t count_ = 0;
  std::shared_ptr<const Layer> shared_;
};

std::vector<float> copy_of(const Tensor& tensor) { return {tensor.as<float>().begin(), tensor.as<float>().end()}; }

}  // namespace

TEST_CASE("gradients of composites equal finite differences, however they are nested") {
  const auto library = make_onednn_primitives(1);
  for (std::uint64_t seed = test::seed(); seed < test::seed() + (sanitized ? 20 : 60); ++seed) {
    Garden garden(seed);
    Sequential model;
    model.add(Dense(features));
    for (int i = 0; i < 3; ++i) model.add(garden.layer(2));
    model.add(Dense(features));
    check_against_differences("nesting " + std::to_string(seed), model, {3, features});
    GradientCheckOptions options;
    options.primitives = library.get();
    check_against_differences("nesting in oneDNN " + std::to_string(seed), model, {3, features}, options);
  }
}

TEST_CASE("residual blocks and concatenations of layers that choose their layouts") {
  const auto primitives = make_onednn_primitives(1);
  GradientCheckOptions options;
  options.primitives = primitives.get();
  const auto block = [] { return Residual(Sequential(Conv2d(16, 3, 1, 1), Conv2d(16, 3, 1, 1))); };
  const auto relus = [] {
    return Sequential(Residual(Sequential(Conv2d(16, 3, 1, 1), ReLU(), Conv2d(16, 3, 1, 1))), ReLU());
  };
  check_against_differences("residual blocks of convolutions",
                            Sequential(Conv2d(16, 3, 1, 1), block(), block(), Flatten(), Dense(4)), {2, 6, 5, 1},
                            options);
  check_against_differences("with ReLUs behind their sums",
                            Sequential(Conv2d(16, 3, 1, 1), relus(), relus(), Flatten(), Dense(4)), {2, 6, 5, 1},
                            options);
  check_against_differences("a shortcut of another layout",
                            Sequential(Residual(Conv2d(32, 3, 1, 1), Conv2d(32, 1)), MaxPool2d(2), Flatten(), Dense(4)),
                            {2, 6, 6, 3}, options);
  check_against_differences("joined convolutions",
                            Sequential(Concat(Conv2d(16, 3, 1, 1), Conv2d(16, 1)), Conv2d(8, 3), Flatten(), Dense(4)),
                            {2, 6, 5, 1}, options);
  const Conv2d depthwise(16, {3, 2}, {.padding = same_padding, .groups = 16});
  check_against_differences("a depthwise convolution that is used twice",
                            Sequential(Conv2d(16, 3), depthwise, Residual(Sequential(depthwise, ReLU(), Conv2d(16, 1))),
                                       GlobalAveragePool(), Flatten(), Dense(4)),
                            {2, 6, 7, 1}, options);
  check_against_differences(
      "residual blocks of dense layers",
      Sequential(Dense(8), Residual(Sequential(Dense(8), PReLU(), Residual(Sequential(Dense(8))))), Dense(4)), {3, 5},
      options);
  check_against_differences("features summed behind a flatten",
                            Sequential(
                                Conv2d(16, 3),
                                [](Value x, GraphBuilder& b) {
                                  const Value flat = Flatten().build(x, b);
                                  return b.apply(AddSpec{}, {flat, Negate().build(flat, b), flat});
                                },
                                Dense(4)),
                            {2, 6, 5, 1}, options);
}

TEST_CASE(
    "a layer's state is float32 or int64: others, which ranks could not average nor checkpoints hold, are refused") {
  const auto build_with = [](DType dtype, Scope scope) {
    const Sequential model([&](Value x, GraphBuilder& b) {
      b.state(Dense(1), "count", {1}, dtype, 0, scope);
      return x;
    });
    static_cast<void>(build_graph(model, {2, 3}));
  };
  for (const Scope scope : {Scope::averaged, Scope::replicated, Scope::per_rank}) {
    for (const DType dtype : {DType::float32, DType::int64}) CHECK_NOTHROW(build_with(dtype, scope));
    for (const DType dtype : {DType::float64, DType::float16, DType::bfloat16, DType::int32})
      require_mentions(message_of<LogicError>([&] { build_with(dtype, scope); }),
                       {"dense1.count", std::string(name_of(dtype)), "float32, or int64"});
  }
}

TEST_CASE("a residual network of eight convolutions") {
  const auto primitives = make_onednn_primitives(1);
  GradientCheckOptions options;
  options.primitives = primitives.get();
  options.elements = 12;
  check_against_differences("residual network", apps::residual_network(), {2, 28, 28, 1}, options);
}

TEST_CASE("the same layer twice is one set of parameters, and so is a copy of it; another one is another") {
  const Dense shared(4);
  const Graph graph = build_graph(Sequential(shared, ReLU(), shared, Sequential(Dense(shared))), {2, 4});
  REQUIRE(graph.parameters.size() == 2);
  CHECK(graph.nodes.size() == 4);
  CHECK(build_graph(Sequential(Dense(4), Dense(4)), {2, 4}).parameters.size() == 4);
  CHECK_THROWS_AS(build_graph(Sequential(shared, Dense(5), shared), {2, 4}), InputError);  // columns do not fit
  // Layers that go again while the model is built, one in the other's place.
  const Function temporary([](Value x, GraphBuilder& b) {
    for (int i = 0; i < 3; ++i) x = Dense(4).build(x, b);
    return x;
  });
  CHECK(build_graph(temporary, {2, 4}).parameters.size() == 6);
}

namespace {

/// Takes any candidate that can run, another for each question.
class AnyPicker final : public Picker {
 public:
  explicit AnyPicker(std::uint64_t seed) : key_(seed, Purpose::test, 9) {}
  std::size_t pick(std::string_view, std::span<const Candidate> candidates) override {
    std::vector<std::size_t> possible;
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (candidates[i].run) possible.push_back(i);
    return possible.at(key_.below(possible.size(), asked_++));
  }

 private:
  RngKey key_;
  std::uint64_t asked_ = 0;
};

}  // namespace

TEST_CASE("layers that are used twice, on images of two sizes and with and without ReLU, whatever is picked") {
  const auto primitives = make_onednn_primitives(1);
  const Conv2d conv(16, 3, 1, 1);
  const Dense dense(6);
  const Sequential model(Conv2d(16, 3, 1, 1), conv, ReLU(), MaxPool2d(2), conv, conv, ReLU(), Flatten(), Dense(6),
                         dense, ReLU(), dense);
  const auto pooled = [] {
    const Conv2d twice(16, 3);
    return Sequential(Concat(Sequential(twice, ReLU(), MaxPool2d(2)), Sequential(twice, MaxPool2d(2))), Flatten(),
                      Dense(4));
  };
  for (std::uint64_t seed = test::seed(); seed < test::seed() + 12; ++seed) {
    AnyPicker picker(seed);
    GradientCheckOptions options;
    options.primitives = primitives.get();
    options.picker = &picker;
    options.elements = 30;
    check_against_differences("used twice " + std::to_string(seed), model, {2, 8, 8, 16}, options);
    check_against_differences("with pooling " + std::to_string(seed), pooled(), {2, 10, 10, 16}, options);
    check_against_differences("of few channels " + std::to_string(seed), pooled(), {2, 10, 10, 1}, options);
  }
}

namespace {

/// What the rows of a batch are.
struct Rows {
  std::int64_t samples, padding;
  float scale;  ///< of the numbers in padding rows
};

/// The gradients of all parameters. The loss gradient of padding rows is 0, as their weight makes it.
std::vector<float> gradients(const Layer& layer, std::int64_t extent, const Rows& rows, std::uint64_t seed) {
  const auto primitives = make_onednn_primitives(1);
  AnyPicker picker(seed);  // picks alike for all rows
  const std::int64_t count = rows.samples + rows.padding, pixels = extent * extent;
  PlainModel model(layer, {count, extent, extent, 1}, *primitives, picker);
  const std::int64_t outputs = model.output().shape[1];
  auto x = random_numbers(count * pixels, 1, 1), dy = random_numbers(count * outputs, 2, 1);
  for (auto i = static_cast<std::size_t>(rows.samples * pixels); i < x.size(); ++i) x[i] *= rows.scale;
  std::fill(dy.begin() + rows.samples * outputs, dy.end(), 0.0F);
  model.forward(Tensor({{count, extent, extent, 1}, DType::float32, {}}, x.data()));
  model.backward(Tensor(model.output(), dy.data()));
  std::vector<float> all;
  for (const Parameter& parameter : model.parameters()) {
    const auto values = to_file(parameter, parameter.gradient);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace

TEST_CASE("padding rows give nothing to any gradient, whatever they hold and whatever is picked") {
  const Sequential pooled(Conv2d(16, 3), ReLU(), MaxPool2d(2), Conv2d(16, 3), ReLU(), MaxPool2d(2), Conv2d(8, 1),
                          ReLU(), AveragePool2d(2), Flatten(), Dense(10));
  const auto check = [](const Layer& layer, std::int64_t extent, std::uint64_t seed) {
    INFO("seed " << seed << ", images of " << extent);
    const auto padded = gradients(layer, extent, {2, 1, 1}, seed);
    CHECK(gradients(layer, extent, {2, 1, 0}, seed) == padded);
    CHECK(gradients(layer, extent, {2, 1, 1e6F}, seed) == padded);
    check_close("the samples alone", padded, gradients(layer, extent, {2, 0, 1}, seed),
                1e-6F);  // another order of sums
  };
  for (std::uint64_t seed = test::seed(); seed < test::seed() + 6; ++seed) {
    check(apps::residual_network(), 28, seed);
    check(pooled, 14, seed);
  }
}

TEST_CASE("whole numbers are for operations of a user's own") {
  const std::vector<Field> fields{{"input", {4}, DType::int32}, {"numbers", {4}, DType::float32}};
  CHECK_THROWS_AS(build_graph(Dense(3), fields, 2), InputError);
  CHECK_THROWS_AS(build_graph(Sequential(ReLU(), Dense(3)), fields, 2), InputError);
  const Function sum([](Value x, GraphBuilder& b) { return b.apply(AddSpec{}, {b.input("numbers"), x}); });
  CHECK_THROWS_AS(build_graph(sum, fields, 2), InputError);
}

TEST_CASE("a shared parameter's gradient is told of once, when it is complete") {
  const auto primitives = make_reference_primitives();
  FirstPicker picker;
  const Dense shared(4);
  PlainModel model(Sequential(shared, ReLU(), shared, Dense(3), Dense(3)), {2, 4}, *primitives, picker);
  struct Told {
    PlainModel* model;
    std::vector<std::size_t> ids;
    std::vector<std::vector<float>> gradients;
    void mark_ready(ParameterId id, Stream&) {
      ids.push_back(index_of(id));
      gradients.push_back(copy_of(model->parameters()[index_of(id)].gradient));
    }
  } told{&model, {}, {}};
  std::vector<float> x(8, 0.5F), dy(6, 1.0F);
  model.forward(Tensor({{2, 4}, DType::float32, {}}, x.data()));
  std::copy(dy.begin(), dy.end(), model.program().output_gradient().as<float>().begin());
  model.program().backward(model.pass().reporting(told));
  CHECK(told.ids == std::vector<std::size_t>{4, 5, 2, 3, 0, 1});
  for (std::size_t i = 0; i < told.ids.size(); ++i)
    CHECK(told.gradients[i] == copy_of(model.parameters()[told.ids[i]].gradient));
}

TEST_CASE("what has no part in the output is left out, and a parameter in it is refused") {
  const Function unread([](Value x, GraphBuilder& b) {
    ReLU().build(x, b);
    return Dense(2).build(x, b);
  });
  CHECK(build_graph(unread, {2, 3}).nodes.size() == 1);
  const Function untrained([](Value x, GraphBuilder& b) {
    Dense(7).build(x, b);
    return Dense(2).build(x, b);
  });
  CHECK_THROWS_AS(build_graph(untrained, {2, 3}), InputError);
}

TEST_CASE("a gradient that is wrong is found, and named") {
  class Wrong final : public CustomOperation {
   public:
    [[nodiscard]] std::string_view kind() const noexcept override { return "wrong"; }
    [[nodiscard]] Shape output(std::span<const Shape> inputs) const override { return inputs[0]; }
    void forward(const CustomArguments& a, const Pass&) const override {
      for (std::size_t i = 0; i < a.input().size(); ++i) a.output()[i] = 2 * a.input()[i];
    }
    void backward(const CustomArguments& a, const Pass&) const override {
      for (std::size_t i = 0; i < a.input().size(); ++i)
        a.input_gradient()[i] = (i == 5 ? 1 : 2) * a.output_gradient()[i];
    }
  };
  const Function layer([](Value x, GraphBuilder& b) { return b.apply(std::make_shared<Wrong>(), {x}); });
  CHECK_THROWS_AS(check_gradients(layer, {3, 4}), Error);
  const GradientReport report = compare_gradients(layer, {3, 4});
  CHECK(report.wrong == 1);
  CHECK(report.first_wrong.starts_with("input[5]"));
}
